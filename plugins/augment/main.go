// Augment is the first-party plugin for augmentation. Its stage waveaug changes the level, noise and polarity of
// waveforms. Its stage specaugment masks bands and frames of mel spectrograms. xtts-host starts it:
//
//	go build -o plugins/augment/augment_linux_amd64 ./plugins/augment
//	xtts-host --plugins ./plugins --train-data LJSpeech-1.1 --augment waveaug
//
// plugin.json lists the configuration keys of each stage with their units and defaults.
package main

import (
	"github.com/xtts-host/xtts-host/plugins/augment/specaugment"
	"github.com/xtts-host/xtts-host/plugins/augment/waveaug"
	"github.com/xtts-host/xtts-host/plugins/internal/datagpu"
	"github.com/xtts-host/xtts-host/shared/stage"
)

func main() {
	stage.Serve(stage.Plugin{
		ID:      "augment",
		Version: "0.1.0",
		Stages: map[string]func() stage.Stage{
			"waveaug":     func() stage.Stage { return &waveaug.Stage{OpenGPU: datagpu.Open} },
			"specaugment": func() stage.Stage { return &specaugment.Stage{OpenGPU: datagpu.Open} },
		},
	})
}
