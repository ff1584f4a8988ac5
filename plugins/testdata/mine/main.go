// Mine is the plugin features under a name that no plugin of the program has, so that tests can install it.
package main

import (
	"github.com/xtts-host/xtts-host/plugins/features/logmel"
	"github.com/xtts-host/xtts-host/plugins/features/prosody"
	"github.com/xtts-host/xtts-host/shared/stage"
)

func main() {
	stage.Serve(stage.Plugin{
		ID: "mine", Version: "0.1.0",
		Stages: map[string]func() stage.Stage{
			"logmel":  func() stage.Stage { return new(logmel.Stage) },
			"prosody": func() stage.Stage { return new(prosody.Stage) },
		},
	})
}
