package waveaug

import (
	"context"
	"fmt"

	rows "github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// The ports, as named in plugin.json.
const (
	waveform        = "waveform"         // f32[B, T_wav], edited in place
	waveformLengths = "waveform_lengths" // i32[B], in samples
)

// Stage implements the stage "waveaug". plugin.json documents its configuration. It rejects a row with a sample that is
// not finite. On a GPU, a graph does the arithmetic, with the same draws.
type Stage struct {
	// OpenGPU opens the GPU of a configuration that has one. If it is nil, such a configuration is refused.
	OpenGPU gpustage.Opener

	config config
	gpu    gpustage.Handle
}

// Configure refuses a range whose lower end is above its upper end.
func (s *Stage) Configure(_ context.Context, cfg *stage.Config) error {
	s.config = defaults()
	if err := cfg.Decode(&s.config); err != nil {
		return err
	}
	if err := s.config.check(); err != nil || cfg.Device == "" {
		return err
	}
	return s.load(cfg)
}

// Attach pins the memory for transfers to the GPU.
func (s *Stage) Attach(memory []byte) error { return s.gpu.Attach(memory) }

// Close releases the GPU.
func (s *Stage) Close() error { return s.gpu.Close() }

// Process augments the rows in parallel. The bits of a row depend only on the row and its key.
func (s *Stage) Process(ctx context.Context, b *stage.Batch) error {
	wave, lengths, width := b.Float32(waveform), b.Int32(waveformLengths), b.Shape(waveform)[1]
	for row, n := range lengths {
		if n < 0 || int(n) > width {
			return fmt.Errorf("row %d: %d samples in a row of %d", row, n, width)
		}
	}
	if s.gpu.Program() != nil {
		return s.onGPU(ctx, b)
	}
	stage.EachRow(len(lengths), func(row int) {
		if ctx.Err() != nil {
			return // no one waits for the result any more
		}
		r := b.Rand(row)
		d := s.config.draw(r)
		d.report(b, row)
		if err := d.apply(wave[row*width:][:lengths[row]], r); err != nil {
			b.Reject(row, err.Error())
		}
		limit(b, row)
	})
	return ctx.Err()
}

// limit scales a row to the largest peak that the port may have, and reports by how much. The lengths are right.
func limit(b *stage.Batch, row int) {
	samples := b.Float32(waveform)[row*b.Shape(waveform)[1]:][:b.Int32(waveformLengths)[row]]
	if db := rows.Limit(samples); db < 0 {
		b.Report(row, "limit_db", db)
	}
}
