package main

import (
	"context"
	"math"

	"github.com/xtts-host/xtts-host/shared/stage"
)

// softClip distorts each clip as an overdriven microphone does, with a drive uniform in [0, maxDrive).
// Without drive, a clip stays as it is.
type softClip struct {
	maxDrive float64
}

// Configure is called once, before the first batch. The host has checked the configuration against plugin.json by
// then, but does not fill in defaults.
func (s *softClip) Configure(_ context.Context, cfg *stage.Config) error {
	values := struct {
		MaxDrive float64 `json:"max_drive"`
	}{MaxDrive: 4}
	if err := cfg.Decode(&values); err != nil {
		return err
	}
	s.maxDrive = values.MaxDrive
	return nil
}

// Process edits one batch in place. Several batches may be in it at the same time, so s is only read.
func (s *softClip) Process(_ context.Context, b *stage.Batch) error {
	wave := b.Float32("waveform")          // f32[B, T_wav], one row behind the other
	lengths := b.Int32("waveform_lengths") // samples of each row; 0 in an empty one
	width := b.Shape("waveform")[1]        // T_wav, which differs from bucket to bucket
	for row, n := range lengths {
		// The row's own generator: the clip gets the same drive in any batch, process or restarted run.
		drive := s.maxDrive * b.Rand(row).Float64()
		overdrive(wave[row*width:][:n], drive) // behind the n samples lies padding: leave it as it is
	}
	return nil
}

// overdrive replaces each sample x by tanh(drive*x) / tanh(drive), which keeps full scale at full scale. A drive of 0 changes
// nothing.
func overdrive(clip []float32, drive float64) {
	if drive == 0 {
		return
	}
	scale := 1 / math.Tanh(drive)
	for i, x := range clip {
		clip[i] = float32(scale * math.Tanh(drive*float64(x)))
	}
}
