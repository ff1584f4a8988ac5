// Command my-plugin is a template for plugins of xtts-host: one augmentation, soft clipping. The guide docs/plugins.md
// in the repository of xtts-host starts from it.
package main

import "github.com/xtts-host/xtts-host/shared/stage"

// ID, version and stage names must be those in plugin.json.
func main() {
	stage.Serve(stage.Plugin{
		ID:      "my-plugin",
		Version: "0.1.0",
		Stages: map[string]func() stage.Stage{
			"my-plugin": func() stage.Stage { return new(softClip) },
		},
	})
}
