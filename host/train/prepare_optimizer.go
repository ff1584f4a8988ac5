package train

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Prepare is Model.Prepare for an optimizer, to be called after it. Every graph runs without changing weights and
// state, so its memory is allocated before the first step; then it is captured and compared.
func (o *Optimizer) Prepare() (Prepared, error) {
	var p Prepared
	if !o.device.onGPU() {
		return p, nil
	}
	began := time.Now()
	all := o.rehearsals()
	clear(o.out.host)
	for _, r := range all {
		// finite is false: each update writes back what it read.
		if err := errors.Join(o.send(o.in), o.send(o.out), o.run(*r.execution)); err != nil {
			return p, err
		}
	}
	err := o.device.Compute.Synchronize()
	if err == nil && o.model.captured { // after a fault of the model's graphs, the optimizer's are not captured
		err = p.graphs(&rehearsed{o, all})
		o.captured = p.Graphs > 0
	}
	if err == nil {
		p.ArenaBytes, err = o.ArenaBytes()
	}
	clear(o.out.host)
	o.device.Timer.restart()
	p.Time = time.Since(began)
	return p, err
}

// rehearsal is a graph with the memory that it writes.
type rehearsal struct {
	*execution
	name    string
	regions []region
}

// region is a part of a block of the device, in bytes.
type region struct {
	mem      gpu.Memory
	at, size int
	dtype    manifest.DType
}

// rehearsals lists everything that a step may run. Only the beginning of the accumulated gradients is compared; their
// content does not matter yet.
func (o *Optimizer) rehearsals() []rehearsal {
	w, out := &o.window, region{o.out.dev, 0, o.out.used, manifest.F32}
	all := []rehearsal{{&w.norm, "norm", []region{out}}}
	for i := range w.squares {
		all = append(all, rehearsal{&w.squares[i], "sum of squares", []region{out}})
	}
	for first := range w.accumulate {
		for i := range w.accumulate[first] {
			a := &w.accumulate[first][i]
			acc := w.acc.region(a.Range)
			acc.size = min(acc.size, sampledBytes)
			all = append(all,
				rehearsal{&a.execution, fmt.Sprintf("accumulation of element %d on", a.Start), []region{acc, out}})
		}
	}
	for i := range o.updates {
		u := &o.updates[i]
		all = append(all, rehearsal{&u.execution, "update of " + u.of, u.written})
	}
	for i := range o.average.updates {
		u := &o.average.updates[i]
		all = append(all, rehearsal{&u.execution, "average of " + u.of, u.written})
	}
	return slices.Concat(all, w.kept.rehearsals(o), w.share.rehearsals(o))
}

// rehearsed is the capturer of an optimizer.
type rehearsed struct {
	*Optimizer
	all []rehearsal
}

func (o *rehearsed) capture() (int, error) {
	for id, r := range o.all {
		if err := o.memory.capture(r.execution, id); err != nil {
			return 0, err
		}
		if err := errors.Join(o.send(o.out), o.run(*r.execution), o.device.Compute.Synchronize()); err != nil {
			return 0, fmt.Errorf("capture the CUDA graph of the optimizer's %s: %w", r.name, err)
		}
	}
	return len(o.all), nil
}

func (o *rehearsed) release() {
	for _, r := range o.all {
		r.options = o.async
	}
}

// compare uses the memory of training for both runs, and restores it.
func (o *rehearsed) compare() (fault, err error) {
	all := o.all
	size, regions := 0, 0
	for _, r := range all {
		sum := 0
		for _, part := range r.regions {
			sum += part.size
		}
		size, regions = max(size, sum), max(regions, len(r.regions))
	}
	kept, err := o.device.Context.Allocate(size)
	if err != nil {
		return nil, err
	}
	stage, err := o.device.Context.AllocateHost(2 * regions * sampledBytes)
	if err != nil {
		return nil, errors.Join(err, kept.Close())
	}
	defer func() { err = errors.Join(err, stage.Close(), kept.Close()) }()

	o.setRate(1e-2)
	*o.step.value = 1
	o.average.next(0)
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(all)) { // in another order than that of the captures
		r := all[i]
		// A value that a graph does not write stays: the flag is tested with both values.
		for _, finite := range []uint8{0, 1} {
			*o.finite.value, *o.gradNorm.value, *o.scale.value = finite, 1, 1
			if err := errors.Join(o.send(o.in), o.send(o.out)); err != nil {
				return nil, err
			}
			replayed, err := o.outcome(r, kept, stage.Bytes()[:len(stage.Bytes())/2])
			if err != nil {
				return nil, err
			}
			graph := r.options
			r.options = o.async
			eager, err := o.outcome(r, kept, stage.Bytes()[len(stage.Bytes())/2:])
			r.options = graph
			if err != nil {
				return nil, err
			}
			if d := distance(replayed, eager); !(d <= toleranceOf(o.model.precision)) {
				return fmt.Errorf("the replayed CUDA graph of the optimizer's %s differs from its kernels by %.2g",
						r.name, d),
					nil
			}
		}
	}
	return nil, nil
}

// outcome runs, copies the beginning of each region to stage, and restores the regions.
func (o *rehearsed) outcome(r rehearsal, kept gpu.Memory, stage []byte) (out [][]float32, err error) {
	s, at := o.device.Compute, 0
	var errs []error
	var flags []byte
	var samples []sample
	for _, part := range r.regions {
		errs = append(errs, s.Copy(kept, at, part.mem, part.at, part.size))
		at += part.size
	}
	errs = append(errs, o.run(*r.execution))
	at = 0
	for _, part := range r.regions {
		n := min(part.size, sampledBytes)
		errs = append(errs, s.Download(stage[:n], part.mem, part.at), s.Copy(part.mem, part.at, kept, at, part.size))
		samples = append(samples, sample{stage[:n], part.dtype})
		if part.mem == o.out.dev {
			flags = stage[:n]
		}
		stage, at = stage[n:], at+part.size
	}
	err = errors.Join(append(errs, s.Synchronize())...)
	out = values(samples)
	if flags != nil { // as a float a flag is almost 0
		out = append(out, []float32{float32(flags[o.finite.at])})
	}
	return out, err
}
