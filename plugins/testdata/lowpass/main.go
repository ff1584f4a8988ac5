// Lowpass is an example of a plugin in Go that computes on the data GPU of a run, and on the CPU without one.
package main

import "github.com/xtts-host/xtts-host/shared/stage"

func main() {
	stage.Serve(stage.Plugin{ID: "lowpass", Version: "1.0.0", Stages: map[string]func() stage.Stage{
		"lowpass": func() stage.Stage { return new(lowpass) },
	}})
}
