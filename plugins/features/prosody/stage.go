package prosody

import (
	"context"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/pitch"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// The ports, as named in plugin.json.
const (
	waveform        = "waveform"         // f32[B, T_wav], samples in [-1, 1]
	waveformLengths = "waveform_lengths" // i32[B], in samples
	pitches         = "pitch"            // f32[B, T_mel], ln Hz, 0 if unvoiced
	energies        = "energy"           // f32[B, T_mel], ln of the root mean square
	prosodyLengths  = "prosody_lengths"  // i32[B], in frames: the mel_lengths of the same rows
)

// Stage implements the stage "prosody" for the run's feature contract. plugin.json documents its configuration. It uses
// no random numbers. It rejects a row with a sample that is not finite, or that is too short for one mel frame.
type Stage struct {
	extractor *pitch.Extractor
}

// Configure refuses a configuration that is impossible at the contract's sample rate, and buckets that do not match the
// contract.
func (s *Stage) Configure(_ context.Context, cfg *stage.Config) error {
	var c pitch.Config
	if err := cfg.Decode(&c); err != nil {
		return err
	}
	e, err := pitch.New(cfg.Features, c)
	if err != nil {
		return err
	}
	for bucket := range cfg.Buckets() {
		if err := fits(cfg, bucket); err != nil {
			return fmt.Errorf("bucket %d: %w", bucket, err)
		}
	}
	s.extractor = e
	return nil
}

func fits(cfg *stage.Config, bucket int) error {
	wave, samples := cfg.Shape(bucket, waveform), cfg.Shape(bucket, waveformLengths)
	pitch, energy, lengths := cfg.Shape(bucket, pitches), cfg.Shape(bucket, energies), cfg.Shape(bucket, prosodyLengths)
	if len(wave) != 2 || len(samples) != 1 || len(pitch) != 2 || len(lengths) != 1 || !slices.Equal(pitch, energy) {
		return fmt.Errorf(
			"ports of shapes %s %v, %s %v, %s %v, %s %v, %s %v: want [B,T_wav], [B], [B,T_mel], [B,T_mel], [B]",
			waveform, wave, waveformLengths, samples, pitches, pitch, energies, energy, prosodyLengths, lengths)
	}
	if rows := []int{wave[0], samples[0], pitch[0], lengths[0]}; slices.Min(rows) != slices.Max(rows) {
		return fmt.Errorf("ports of %v rows", rows)
	}
	if frames := cfg.Features.Frames(wave[1]); pitch[1] < frames {
		return hint.Errorf(fmt.Sprintf("give the bucket at least %d frames, or fewer samples", frames),
			"%s has room for %d frames, but %d samples make %d", pitches, pitch[1], wave[1], frames)
	}
	return nil
}

// Process computes the rows in parallel. The bits of a row depend only on that row.
func (s *Stage) Process(ctx context.Context, b *stage.Batch) error {
	var (
		wave, samples = b.Float32(waveform), b.Int32(waveformLengths)
		pitch, energy = b.Float32(pitches), b.Float32(energies)
		frames        = b.Int32(prosodyLengths)
		width, room   = b.Shape(waveform)[1], b.Shape(pitches)[1]
	)
	for row, n := range samples {
		if n < 0 || int(n) > width {
			return fmt.Errorf("row %d: %d samples in a row of %d", row, n, width)
		}
	}
	stage.EachRow(len(samples), func(row int) {
		if ctx.Err() != nil {
			return // no one waits for the result any more
		}
		clip := wave[row*width:][:samples[row]]
		pitch, energy := pitch[row*room:][:room], energy[row*room:][:room]
		count := s.extractor.Features().Frames(len(clip))
		if err := s.extractor.Compute(pitch, energy, clip); err != nil {
			b.Reject(row, err.Error())
			count = 0
		}
		frames[row] = int32(count)
		fill(pitch[count:], float32(b.Pad(pitches)))
		fill(energy[count:], float32(b.Pad(energies)))
	})
	return ctx.Err()
}

func fill(elements []float32, value float32) {
	for i := range elements {
		elements[i] = value
	}
}
