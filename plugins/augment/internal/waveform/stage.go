package waveform

import (
	"context"
	"fmt"
	"sync"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// The ports, as named in plugin.json.
const (
	Port    = "waveform"         // f32[B, T_wav], edited in place
	Lengths = "waveform_lengths" // i32[B], in samples
)

// Effect is what a stage does to a row.
type Effect interface {
	// Configure reads the configuration and prepares what all rows use. An error refuses the run.
	Configure(cfg *stage.Config) error
	// Apply changes a row that has samples. It is called for several rows at the same time. An error is one of the
	// stage, not of the row: it fails the batch.
	Apply(r *Row) error
}

// Stage applies an effect to the rows of a batch. It rejects a row with a sample that is not finite, and limits what
// the effect makes of the others ([Limit]). It computes on the CPU.
type Stage struct {
	Effect Effect
	// Resizes says that the effect changes the length of rows, so the lengths are an output.
	Resizes bool

	rows sync.Pool // of *Row
}

// Configure configures the effect.
func (s *Stage) Configure(_ context.Context, cfg *stage.Config) error { return s.Effect.Configure(cfg) }

// Process applies the effect to the rows in parallel.
func (s *Stage) Process(ctx context.Context, b *stage.Batch) error {
	lengths, width := b.Int32(Lengths), b.Shape(Port)[1]
	for row, n := range lengths {
		if n < 0 || int(n) > width {
			return fmt.Errorf("row %d: %d samples in a row of %d", row, n, width)
		}
	}
	errs := make([]error, len(lengths))
	stage.EachRow(len(lengths), func(row int) {
		if ctx.Err() == nil && lengths[row] > 0 { // else no one waits for the result any more, or the row is empty
			errs[row] = s.row(b, row)
		}
	})
	for row, err := range errs { // the first, so that the message does not depend on the order of the work
		if err != nil {
			return fmt.Errorf("row %d: %w", row, err)
		}
	}
	return ctx.Err()
}

// row applies the effect to a row that is not empty.
func (s *Stage) row(b *stage.Batch, row int) error {
	r, _ := s.rows.Get().(*Row)
	if r == nil {
		r = new(Row)
	}
	defer s.rows.Put(r)
	width, n := b.Shape(Port)[1], int(b.Int32(Lengths)[row])
	r.space = b.Float32(Port)[row*width:][:width]
	r.Samples, r.rand, r.batch, r.number = r.space[:n], b.Rand(row), b, row
	r.power = -1
	if peak := vector.Peak(r.Samples); peak-peak != 0 {
		b.Reject(row, "a sample is not finite")
		return nil
	}
	if err := s.Effect.Apply(r); err != nil {
		return err
	}
	if db := Limit(r.Samples); db < 0 {
		r.Report("limit_db", db)
	}
	if !s.Resizes {
		return nil
	}
	pad := float32(b.Pad(Port))
	for i := len(r.Samples); i < n; i++ {
		r.space[i] = pad
	}
	b.Int32(Lengths)[row] = int32(len(r.Samples))
	return nil
}
