package train_test

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// exchange combines the parts of ranks that are goroutines of one process, in the order of the ranks.
type exchange struct {
	mu      sync.Mutex
	parts   [][]train.Part
	arrived int
	done    chan struct{} // closed when all have arrived
}

// member is the exchange as one rank sees it.
type member struct {
	*exchange
	rank int
	ctx  context.Context
}

func (m member) Sum(_ gpu.Stream, parts []train.Part) error {
	return m.meet(parts, func(sum, v float32) float32 { return sum + v })
}

func (m member) Broadcast(parts []train.Part) error {
	return m.meet(parts, func(lead, _ float32) float32 { return lead })
}

// meet waits for all ranks, and then gives each what combine makes of their values.
func (m member) meet(parts []train.Part, combine func(a, b float32) float32) error {
	m.mu.Lock()
	done := m.done
	m.parts[m.rank] = parts
	if m.arrived++; m.arrived == len(m.parts) {
		for i, first := range m.parts[0] {
			all := values(first)
			for _, other := range m.parts[1:] {
				for j, v := range values(other[i]) {
					all[j] = combine(all[j], v)
				}
			}
			for _, rank := range m.parts {
				set(rank[i], all)
			}
		}
		m.arrived, m.done = 0, make(chan struct{})
		close(done)
	}
	m.mu.Unlock()
	select {
	case <-done:
		return nil
	case <-m.ctx.Done():
		return context.Cause(m.ctx)
	}
}

// values returns a copy of a part, in f32.
func values(p train.Part) []float32 {
	if p.DType != manifest.BF16 {
		return slices.Clone(ort.View[float32](p.Host))
	}
	var wide []float32
	for _, bits := range ort.View[uint16](p.Host) {
		wide = append(wide, math.Float32frombits(uint32(bits)<<16))
	}
	return wide
}

// set writes a part. In bf16 each value is rounded to the nearest, and to the even one of two that are as near.
func set(p train.Part, all []float32) {
	if p.DType != manifest.BF16 {
		copy(ort.View[float32](p.Host), all)
		return
	}
	to := ort.View[uint16](p.Host)
	for i, v := range all {
		bits := math.Float32bits(v)
		upper, rest := bits>>16, bits&0xffff
		switch {
		case v != v:
			upper |= 1 << 6
		case rest > 1<<15 || rest == 1<<15 && upper&1 == 1:
			upper++
		}
		to[i] = uint16(upper)
	}
}
