package main

import (
	"context"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// mix is the stage.
type mix struct {
	amount float64
	calls  atomic.Int64
}

// A fault may occur every so many batches of a process, when others are in flight. poison is the step of the batch that
// fails in every process.
const (
	every  = 2
	poison = 5
)

// Configure implements stage.Stage.
func (m *mix) Configure(_ context.Context, cfg *stage.Config) error {
	c := struct{ Amount float64 }{0.5}
	if err := cfg.Decode(&c); err != nil {
		return err
	}
	if c.Amount > 1 {
		return hint.Errorf("take an amount from 0 to 1", "amount is %g", c.Amount)
	}
	m.amount = c.Amount
	return nil
}

// Process implements stage.Stage.
func (m *mix) Process(_ context.Context, b *stage.Batch) error {
	wave, lengths, width := b.Float32("waveform"), b.Int32("waveform_lengths"), b.Shape("waveform")[1]
	for row, n := range lengths {
		gain := float32(1 - m.amount*b.Rand(row).Float64())
		for i := range wave[row*width:][:n] {
			wave[row*width+i] *= gain
		}
	}
	if b.Step() == poison {
		m.stumble(b, wave, lengths)
	}
	if m.calls.Add(1)%every == 0 {
		m.misbehave(b, wave, lengths)
	}
	return nil
}

// stumble applies the fault to the poisonous batch.
func (m *mix) stumble(b *stage.Batch, wave []float32, lengths []int32) {
	switch {
	case strikes("crashes at one batch"):
		crash()
	case strikes("takes another dtype"):
		b.Int32("waveform")
	case lengths[0] > 0 && strikes("gives NaN for one row"):
		wave[0] = float32(math.NaN())
	}
}

// misbehave applies the fault to a batch.
func (m *mix) misbehave(b *stage.Batch, wave []float32, lengths []int32) {
	first := 0 // a row that is not empty
	for lengths[first] == 0 {
		first++
	}
	switch {
	case strikes("crashes"):
		crash()
	case strikes("hangs"):
		hang()
	case strikes("fails"):
		panic("index out of range [7] with length 7")
	case strikes("gives NaN"):
		wave[first*b.Shape("waveform")[1]] = float32(math.NaN())
	case strikes("gives a length beyond the tensor"):
		lengths[first] = int32(b.Shape("waveform")[1]) + 1
	case strikes("gives a negative length"):
		lengths[first] = -1
	case strikes("shortens a row"):
		lengths[first]--
	case strikes("writes f64"):
		for i := 0; i+1 < int(lengths[first]); i += 2 {
			*(*float64)(unsafe.Pointer(&wave[first*b.Shape("waveform")[1]+i])) = 0.25
		}
	case strikes("is far too loud"):
		wave[first*b.Shape("waveform")[1]] = 1e30
	case strikes("gives zeros"):
		clear(wave)
	case strikes("writes beyond its tensor"):
		clear(unsafe.Slice(&wave[0], len(wave)+4)[len(wave):])
	case strikes("floods its stderr"):
		flood()
	}
}

// idle is the stage that never works.
type idle struct{}

func (idle) Configure(context.Context, *stage.Config) error { return nil }
func (idle) Process(context.Context, *stage.Batch) error    { return nil }
