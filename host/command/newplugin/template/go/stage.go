package main

import (
	"context"
	"math"

	"github.com/xtts-host/xtts-host/shared/stage"
)

// softClip distorts each clip like an overdriven microphone. The drive of a clip is uniform in [0, maxDrive). A drive
// of 0 leaves the clip unchanged.
type softClip struct {
	maxDrive float64
}

// Configure is called once, before the first batch. The host has already checked the configuration against plugin.json.
// It does not fill in defaults.
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

// Process edits one batch in place. The host may call it for several batches at the same time, so it only reads s.
func (s *softClip) Process(_ context.Context, b *stage.Batch) error {
	wave := b.Float32("waveform")          // f32[B, T_wav], row after row
	lengths := b.Int32("waveform_lengths") // i32[B], samples per row; 0 for an empty row
	width := b.Shape("waveform")[1]        // T_wav, which depends on the bucket
	for row, n := range lengths {
		// Each row has its own generator: a clip gets the same drive in any batch, process or restarted run.
		drive := s.maxDrive * b.Rand(row).Float64()
		b.Report(row, "drive", drive)          // if the host asks for it
		overdrive(wave[row*width:][:n], drive) // the samples after the first n are padding: do not change them
	}
	return nil
}

// overdrive replaces each sample x by tanh(drive*x) / tanh(drive), so samples of ±1 keep their value. A drive of 0
// changes nothing.
func overdrive(clip []float32, drive float64) {
	if drive == 0 {
		return
	}
	scale := 1 / math.Tanh(drive)
	for i, x := range clip {
		clip[i] = float32(scale * math.Tanh(drive*float64(x)))
	}
}
