package waveaug

import (
	"context"
	"fmt"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// The ports, as plugin.json names them.
const (
	waveform        = "waveform"         // f32[B, T_wav], edited in place
	waveformLengths = "waveform_lengths" // i32[B], in samples
)

// Stage serves the augmentation as the stage "waveaug". plugin.json documents its configuration. A row with
// a sample that is not finite is rejected. On a GPU a graph does the arithmetic, and the draws are the same.
type Stage struct {
	// OpenGPU opens the GPU of a configuration that has one; nil refuses it.
	OpenGPU gpustage.Opener

	config config
	gpu    gpustage.Seat
}

// Configure refuses a range whose lower end is above its upper one.
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

// Attach pins the memory for copies to the GPU.
func (s *Stage) Attach(memory []byte) error { return s.gpu.Attach(memory) }

// Close gives the GPU back.
func (s *Stage) Close() error { return s.gpu.Close() }

// Process augments the rows in parallel; each row's bits depend on that row and its key only.
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
			return // nobody waits for the result any more
		}
		if err := s.config.apply(wave[row*width:][:lengths[row]], b.Rand(row)); err != nil {
			b.Reject(row, err.Error())
		}
	})
	return ctx.Err()
}
