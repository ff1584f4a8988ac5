package main

import (
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func TestNoise(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(noise) }, stagetest.Options{
		Manifest: "plugin.json",
		Stage:    "noise",
		Buckets:  []manifest.Bucket{{"T_wav": 400}, {"T_wav": 900}},
	})
}
