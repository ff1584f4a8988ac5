// Augment is the first-party plugin for augmentation. Its stages change waveforms and mel spectrograms; plugin.json
// lists them, with the configuration keys of each, their units and defaults. Those that mix in or convolve recordings
// read them from data folders. xtts-host starts it:
//
//	go build -o plugins/augment/augment_linux_amd64 ./plugins/augment
//	xtts-host --plugins ./plugins --train-data LJSpeech-1.1 --augment noise,equalizer
//
// Each stage is a package. What stages of waveforms have in common is in internal.
package main

import (
	"github.com/xtts-host/xtts-host/plugins/augment/background"
	"github.com/xtts-host/xtts-host/plugins/augment/clipping"
	"github.com/xtts-host/xtts-host/plugins/augment/companding"
	"github.com/xtts-host/xtts-host/plugins/augment/dropout"
	"github.com/xtts-host/xtts-host/plugins/augment/equalizer"
	"github.com/xtts-host/xtts-host/plugins/augment/gain"
	"github.com/xtts-host/xtts-host/plugins/augment/loudness"
	"github.com/xtts-host/xtts-host/plugins/augment/noise"
	"github.com/xtts-host/xtts-host/plugins/augment/pitch"
	"github.com/xtts-host/xtts-host/plugins/augment/reverb"
	"github.com/xtts-host/xtts-host/plugins/augment/room"
	"github.com/xtts-host/xtts-host/plugins/augment/shift"
	"github.com/xtts-host/xtts-host/plugins/augment/specaugment"
	"github.com/xtts-host/xtts-host/plugins/augment/speed"
	"github.com/xtts-host/xtts-host/plugins/augment/tempo"
	"github.com/xtts-host/xtts-host/plugins/augment/trim"
	"github.com/xtts-host/xtts-host/plugins/augment/waveaug"
	"github.com/xtts-host/xtts-host/plugins/internal/datagpu"
	"github.com/xtts-host/xtts-host/shared/stage"
)

var plugin = stage.Plugin{
	ID:      "augment",
	Version: "0.2.0",
	Stages: map[string]func() stage.Stage{
		"background":  background.New,
		"clipping":    clipping.New,
		"companding":  companding.New,
		"dropout":     dropout.New,
		"equalizer":   equalizer.New,
		"gain":        gain.New,
		"loudness":    loudness.New,
		"noise":       noise.New,
		"pitch":       pitch.New,
		"reverb":      reverb.New,
		"room":        room.New,
		"shift":       shift.New,
		"specaugment": func() stage.Stage { return &specaugment.Stage{OpenGPU: datagpu.Open} },
		"speed":       speed.New,
		"tempo":       tempo.New,
		"trim":        trim.New,
		"waveaug":     func() stage.Stage { return &waveaug.Stage{OpenGPU: datagpu.Open} },
	},
}

func main() { stage.Serve(plugin) }
