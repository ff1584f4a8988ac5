//go:build !cuda

package datagpu

import (
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// Open returns an error: this build has no CUDA.
func Open(cfg *stage.Config) (gpustage.Device, error) {
	return nil, hint.Errorf("make build CUDA=1 builds the plugins with CUDA too; with --data-gpu cpu they compute on the CPU",
		"stage %s was given %s, but this build of the plugin has no CUDA", cfg.Stage, cfg.Device)
}
