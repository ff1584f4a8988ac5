package logmel

import (
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func base() manifest.Features {
	return manifest.Features{SampleRate: 22050, NFFT: 1024, WinLength: 1024, HopLength: 256, Window: "hann", Center: true, PadMode: "constant",
		Power: 1, NMels: 80, MelScale: "slaney", MelNorm: "slaney", FMax: 11025, Log: "ln", LogFloor: 1e-5}
}

func TestStageConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(Stage) }, stagetest.Options{
		Manifest: "../plugin.json",
		Stage:    "logmel",
		Features: base(),
		Buckets: []manifest.Bucket{
			{"T_wav": 2000, "T_mel": 8, "n_mels": 80},
			{"T_wav": 8191, "T_mel": 32, "n_mels": 80},
			{"T_wav": 9000, "T_mel": 50, "n_mels": 80},
		},
	})
}
