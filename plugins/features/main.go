// Features is the first-party plugin for preprocessing. Its stage logmel computes mel spectrograms from waveforms. Its
// stage prosody computes pitch and energy of the same frames. Both follow the feature contract of the bundle. xtts-host
// starts it:
//
//	go build -o plugins/features/features_linux_amd64 ./plugins/features
//	xtts-host --plugins ./plugins --train-data LJSpeech-1.1
package main

import (
	"github.com/xtts-host/xtts-host/plugins/features/logmel"
	"github.com/xtts-host/xtts-host/plugins/features/prosody"
	"github.com/xtts-host/xtts-host/plugins/internal/datagpu"
	"github.com/xtts-host/xtts-host/shared/stage"
)

func main() {
	stage.Serve(stage.Plugin{
		ID:      "features",
		Version: "0.1.0",
		Stages: map[string]func() stage.Stage{
			"logmel":  func() stage.Stage { return &logmel.Stage{OpenGPU: datagpu.Open} },
			"prosody": func() stage.Stage { return new(prosody.Stage) },
		},
	})
}
