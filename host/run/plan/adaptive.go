package plan

import (
	"runtime"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Adaptive has the limits of what a run with --adaptive changes.
type Adaptive struct {
	// Slots is the smallest number of ring slots, with which the run begins. Config.BufferSize is the largest.
	Slots int
	// Workers is the largest number of decoders and processes of plugins together.
	Workers int
	// Returns says that slots that are not used take no memory: no GPU has the ring pinned.
	Returns bool
}

// fewestAhead is the smallest number of ring slots with --adaptive: one batch is READY, and one in preparation.
const fewestAhead = 2

// planAdaptive settles what --adaptive may change. Of ranks that share ring and processes, none sees what the others
// need.
func (d *Draft) planAdaptive() error {
	c := d.Config
	if !c.Adaptive {
		return nil
	}
	if n := d.Fed(); n > 1 {
		return hint.Errorf("leave --adaptive out; or start each rank with another value of XTTS_RANKS_MACHINE: then "+
			"each has a ring and plugins of its own",
			"--adaptive: the %d ranks of this machine share a ring and the processes of plugins", n)
	}
	a := &Adaptive{Slots: fewestAhead, Workers: d.Decoders(), Returns: !d.OnGPU() && d.Placement.Data.OnCPU()}
	if d.Bundle.Manifest.Accumulation == manifest.Weighted { // checkWindow says why
		a.Slots = max(a.Slots, c.Accumulate)
	}
	a.Slots = min(a.Slots, c.BufferSize)
	for i := range d.Stages.Resolved.Plugins {
		a.Workers += d.Plan.Workers(i)
	}
	a.Workers = max(a.Workers, runtime.GOMAXPROCS(0))
	d.Adaptive, d.Ring.Prefetch = a, min(d.Ring.Prefetch, a.Slots)
	return nil
}

// MostDecoders is the largest number of batches that are decoded at the same time.
func (p *Plan) MostDecoders() int {
	if p.Config.Adaptive {
		return max(p.Decoders(), runtime.GOMAXPROCS(0))
	}
	return p.Decoders()
}
