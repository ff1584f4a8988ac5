package main

import (
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

// TestConforms checks what the host relies on: the stage does not change padding and empty rows, it writes only its
// outputs, and the result of a row depends only on the row and its key.
func TestConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(softClip) }, stagetest.Options{
		Manifest: "plugin.json",
		Stage:    "my-plugin",
		Config:   `{"max_drive": 8}`,
		Buckets:  []manifest.Bucket{{"T_wav": 1000}, {"T_wav": 4000}},
	})
}

// Replace this by a test of the numbers that your stage computes.
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
			t.Errorf("overdrive of %g with drive %g: got %g, want %g", c.x, c.drive, clip[0], c.want)
		}
	}
}
