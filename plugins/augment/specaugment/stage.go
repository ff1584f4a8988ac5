package specaugment

import (
	"context"
	"fmt"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// The ports, as named in plugin.json.
const (
	melSpectrograms = "mel_spectrograms" // f32[B, T_mel, n_mels], edited in place
	melLengths      = "mel_lengths"      // i32[B], in frames
)

// Stage implements the stage "specaugment". plugin.json documents its configuration. On a GPU, a graph applies the
// masks, with the same bits.
type Stage struct {
	// OpenGPU opens the GPU of a configuration that has one. If it is nil, such a configuration is refused.
	OpenGPU gpustage.Opener

	config config
	gpu    gpustage.Handle
}

// Configure refuses frequency masks that may be wider than the spectrogram.
func (s *Stage) Configure(_ context.Context, cfg *stage.Config) error {
	s.config = defaults()
	if err := cfg.Decode(&s.config); err != nil {
		return err
	}
	for bucket := range cfg.Buckets() {
		if bands := cfg.Shape(bucket, melSpectrograms)[2]; s.config.FreqMaskWidth > bands {
			return hint.Errorf(fmt.Sprintf("the default is %d; a mask of all bands leaves nothing of the row",
				defaults().FreqMaskWidth),
				"config: freq_mask_width %d is more than the %d bands of %s", s.config.FreqMaskWidth, bands,
				melSpectrograms)
		}
	}
	if cfg.Device == "" {
		return nil
	}
	return s.load(cfg)
}

// Attach pins the memory for transfers to the GPU.
func (s *Stage) Attach(memory []byte) error { return s.gpu.Attach(memory) }

// Close releases the GPU.
func (s *Stage) Close() error { return s.gpu.Close() }

// Process masks the rows in parallel. The bits of a row depend only on the row and its key.
func (s *Stage) Process(ctx context.Context, b *stage.Batch) error {
	mel, lengths, shape := b.Float32(melSpectrograms), b.Int32(melLengths), b.Shape(melSpectrograms)
	frames, bands, pad := shape[1], shape[2], float32(b.Pad(melSpectrograms))
	for row, n := range lengths {
		if n < 0 || int(n) > frames {
			return fmt.Errorf("row %d: %d frames in a row of %d", row, n, frames)
		}
	}
	if s.gpu.Program() != nil {
		return s.onGPU(ctx, b)
	}
	stage.EachRow(len(lengths), func(row int) {
		if ctx.Err() != nil {
			return // no one waits for the result any more
		}
		n := int(lengths[row])
		d := s.config.draw(n, bands, b.Rand(row))
		s.config.report(b, row, d)
		valid := mel[row*frames*bands:][:n*bands]
		d.warp.apply(valid, bands)
		apply(valid, bands, pad, d.freqMasks, d.timeMasks)
	})
	return ctx.Err()
}
