package session

import (
	"path/filepath"

	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// newCompiler returns the compiler for the kernels of the training graph; nil if the graph runs as exported.
func newCompiler(s *Session) (fused.Compiler, error) {
	c := s.plan.Config
	if !s.plan.OnGPU() || c.Fuse == "off" || cuda.Fake {
		return nil, nil
	}
	cache, err := config.CacheFolder(c.CacheDir)
	if err != nil {
		cache = "" // then the kernels are compiled at each start
	} else {
		cache = filepath.Join(cache, "kernels")
	}
	compiler, err := kernels.New(s.Device.Context, s.plan.Placement.Model.GPU.Capability, ort.Library(), cache, s.log)
	if err == nil {
		return compiler, nil
	}
	if c.Fuse == "on" {
		return nil, hint.Errorf("fetch it with scripts/fetch-ort.sh --gpu, or train with --fuse auto", "--fuse on: %w", err)
	}
	s.unfused = err
	return nil, nil
}
