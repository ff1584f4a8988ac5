// Inference is the first-party plugin for frozen parts of a model: its stages run inference graphs of the bundle
// (docs/bundle.md), on the CPU or on the data GPU, by the ONNX Runtime library of the host. xtts-host starts it:
//
//	go build -o plugins/inference/inference_linux_amd64 ./plugins/inference
//	xtts-host --graph runs/xtts-bundle --train-data clips
package main

import (
	"github.com/xtts-host/xtts-host/plugins/inference/frozen"
	"github.com/xtts-host/xtts-host/plugins/internal/datagpu"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

func main() {
	stage.Serve(stage.Plugin{
		ID:      "inference",
		Version: "0.1.0",
		Stages: map[string]func() stage.Stage{
			"codes": func() stage.Stage {
				return frozen.New("codes", "code_lengths", manifest.I32, datagpu.Open)
			},
			"conditioning": func() stage.Stage {
				return frozen.New("conditioning_mel", "conditioning_lengths", manifest.F32, datagpu.Open)
			},
		},
	})
}
