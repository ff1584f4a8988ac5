// Gpufault is a plugin whose first process destroys its CUDA context on the data GPU at the third batch, like a kernel
// with a wrong address. Later processes work and change nothing. XTTS_PLUGIN_FAULT_MARKS names a folder for the mark of
// the fault. scripts/gpu_suite.py checks that no other process is affected.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/gpu/cuda/cudatest"
	"github.com/xtts-host/xtts-host/shared/stage"
)

func main() {
	stage.Serve(stage.Plugin{ID: "gpufault", Version: "1.0.0", Stages: map[string]func() stage.Stage{
		"losecontext": func() stage.Stage { return new(loseContext) },
	}})
}

type loseContext struct {
	gpu   gpu.Context
	calls atomic.Int64
}

// Configure implements stage.Stage.
func (s *loseContext) Configure(_ context.Context, cfg *stage.Config) (err error) {
	s.gpu, err = cuda.Open(cfg.Device)
	return err
}

// Process implements stage.Stage.
func (s *loseContext) Process(context.Context, *stage.Batch) error {
	if s.calls.Add(1) != 3 {
		return nil
	}
	mark, err := os.OpenFile(filepath.Join(os.Getenv("XTTS_PLUGIN_FAULT_MARKS"), "lost"), os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil // an earlier process has lost its context
	}
	mark.Close()
	runtime.LockOSThread()
	if err := s.gpu.Bind(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "a write to an invalid address:", cudatest.WriteNowhere())
	os.Exit(1)
	return nil
}
