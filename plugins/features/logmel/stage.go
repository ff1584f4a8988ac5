package logmel

import (
	"context"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/mel"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// The ports, as named in plugin.json.
const (
	waveform        = "waveform"         // f32[B, T_wav], samples in [-1, 1]
	waveformLengths = "waveform_lengths" // i32[B], in samples
	melSpectrograms = "mel_spectrograms" // f32[B, T_mel, n_mels]
	melLengths      = "mel_lengths"      // i32[B], in frames
)

// Stage implements the stage "logmel" for the run's feature contract. It takes no configuration and uses no random
// numbers. It rejects a row with a sample that is not finite, or that is too short for one frame. On a GPU, a graph
// computes the spectrograms, and the same rows are rejected for the same reasons.
type Stage struct {
	// OpenGPU opens the GPU of a configuration that has one. If it is nil, such a configuration is refused.
	OpenGPU gpustage.Opener

	extractor *mel.Extractor
	gpu       gpustage.Handle
}

// Configure refuses an invalid contract, and buckets that do not match the contract.
func (s *Stage) Configure(_ context.Context, cfg *stage.Config) error {
	e, err := mel.New(cfg.Features)
	if err != nil {
		return err
	}
	for bucket := range cfg.Buckets() {
		if err := fits(e, cfg, bucket); err != nil {
			return fmt.Errorf("bucket %d: %w", bucket, err)
		}
	}
	s.extractor = e
	if cfg.Device == "" {
		return nil
	}
	return s.load(cfg)
}

// Attach pins the memory for transfers to the GPU.
func (s *Stage) Attach(memory []byte) error { return s.gpu.Attach(memory) }

// Close releases the GPU.
func (s *Stage) Close() error { return s.gpu.Close() }

func fits(e *mel.Extractor, cfg *stage.Config, bucket int) error {
	wave, frames := cfg.Shape(bucket, waveform), cfg.Shape(bucket, melSpectrograms)
	wavLengths, frameLengths := cfg.Shape(bucket, waveformLengths), cfg.Shape(bucket, melLengths)
	if len(wave) != 2 || len(frames) != 3 || len(wavLengths) != 1 || len(frameLengths) != 1 {
		return fmt.Errorf("ports of shapes %s %v, %s %v, %s %v, %s %v: want [B,T_wav], [B], [B,T_mel,n_mels], [B]",
			waveform, wave, waveformLengths, wavLengths, melSpectrograms, frames, melLengths, frameLengths)
	}
	if rows := []int{wave[0], wavLengths[0], frames[0], frameLengths[0]}; slices.Min(rows) != slices.Max(rows) {
		return fmt.Errorf("ports of %v rows", rows)
	}
	f := e.Features()
	if frames[2] != f.NMels {
		return hint.Errorf("the bundle's input and its features must agree",
			"%s has %d bands, the feature contract n_mels = %d", melSpectrograms, frames[2], f.NMels)
	}
	if n := f.Frames(wave[1]); frames[1] < n {
		return hint.Errorf(fmt.Sprintf("give the bucket at least %d frames, or fewer samples", n),
			"%s has room for %d frames, but %d samples make %d", melSpectrograms, frames[1], wave[1], n)
	}
	return nil
}

// Process computes the rows in parallel. The bits of a row depend only on that row.
func (s *Stage) Process(ctx context.Context, b *stage.Batch) error {
	features := s.extractor.Features()
	bands := features.NMels
	var (
		wave, samples = b.Float32(waveform), b.Int32(waveformLengths)
		out, frames   = b.Float32(melSpectrograms), b.Int32(melLengths)
		width         = b.Shape(waveform)[1]
		size          = b.Shape(melSpectrograms)[1] * bands
		pad           = float32(b.Pad(melSpectrograms))
	)
	for row, n := range samples {
		if n < 0 || int(n) > width {
			return fmt.Errorf("row %d: %d samples in a row of %d", row, n, width)
		}
	}
	if s.gpu.Program() != nil {
		return s.onGPU(ctx, b)
	}
	stage.EachRow(len(samples), func(row int) {
		n := int(samples[row])
		mel := out[row*size : (row+1)*size]
		count := features.Frames(n)
		if ctx.Err() != nil {
			return // no one waits for the result any more
		}
		if err := s.extractor.Compute(mel, wave[row*width:][:n]); err != nil {
			b.Reject(row, err.Error())
			count = 0
		}
		frames[row] = int32(count)
		fill(mel[count*bands:], pad)
	})
	return ctx.Err()
}

func fill(elements []float32, value float32) {
	for i := range elements {
		elements[i] = value
	}
}
