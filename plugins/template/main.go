// Command my-plugin is a plugin of xtts-host to copy: one augmentation, soft clipping. docs/plugins.md of xtts-host leads
// from here to a training run.
package main

import "github.com/xtts-host/xtts-host/shared/stage"

// ID, version and the names of the stages are those of plugin.json.
func main() {
	stage.Serve(stage.Plugin{
		ID:      "my-plugin",
		Version: "0.1.0",
		Stages: map[string]func() stage.Stage{
			"soft-clip": func() stage.Stage { return new(softClip) },
		},
	})
}
