package main

import (
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

// TestConforms asks what the host relies on: padding and empty rows are left alone, nothing but the outputs is written, and a
// row's bits depend on the row and its key only.
func TestConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(softClip) }, stagetest.Options{
		Manifest: "plugin.json",
		Stage:    "soft-clip",
		Config:   `{"max_drive": 8}`,
		Buckets:  []manifest.Bucket{{"T_wav": 1000}, {"T_wav": 4000}},
	})
}

// What the numbers should be is yours to say.
func TestOverdrive(t *testing.T) {
	for _, c := range []struct{ x, drive, want float64 }{
		{0, 4, 0},
		{0.25, 0, 0.25},
		{1, 4, 1},
		{-1, 4, -1},
		{0.25, 4, 0.7621}, // tanh(1) / tanh(4)
		{0.25, 1, 0.3216}, // tanh(1/4) / tanh(1)
	} {
		clip := []float32{float32(c.x)}
		overdrive(clip, c.drive)
		if math.Abs(float64(clip[0])-c.want) > 1e-4 {
			t.Errorf("%g at a drive of %g became %g, want %g", c.x, c.drive, clip[0], c.want)
		}
	}
}
