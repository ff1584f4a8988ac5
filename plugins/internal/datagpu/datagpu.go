// Package datagpu opens the GPU that the host gives to a plugin process, for the stages that compute on it (package
// gpustage):
//
//	device, err := datagpu.Open(cfg) // in Configure, if cfg.Device is not empty
//
// The CUDA driver and ONNX Runtime are loaded when it is called: a process without a GPU needs neither.
package datagpu

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/xtts-host/xtts-host/gpu/cuda"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage/engine"
	"github.com/xtts-host/xtts-host/shared/stage"
)

// process is the only device of the process: the process sees no other GPU, and each context takes about half a GiB of
// GPU memory.
var process struct {
	mu     sync.Mutex
	device *engine.Device // nil while no one has it open
	uuid   string
	users  int
}

// Open returns the GPU cfg.Device, with the limit cfg.MemoryLimit. Later calls in the same process share the device and
// its limit. The path of the ONNX Runtime library comes from the environment, as in the host (ort.LibraryEnv).
func Open(cfg *stage.Config) (gpustage.Device, error) {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.device == nil {
		d, err := open(cfg)
		if err != nil {
			return nil, err
		}
		process.device, process.uuid = d, cfg.Device
	}
	if process.uuid != cfg.Device {
		return nil, fmt.Errorf("the process computes on %s already and cannot on %s as well", process.uuid, cfg.Device)
	}
	process.users++
	return &user{Device: process.device}, nil
}

func open(cfg *stage.Config) (*engine.Device, error) {
	if err := ort.Init(ort.Options{CUDA: true}); err != nil {
		return nil, err
	}
	context, err := cuda.Open(cfg.Device)
	if err != nil {
		return nil, err
	}
	d, err := engine.New(engine.Config{Context: context, MemoryLimit: int(cfg.MemoryLimit), Lost: lost})
	if err != nil {
		return nil, errors.Join(err, context.Close())
	}
	return d, nil
}

// lost ends the process. The host starts another one, with a new context, and rebuilds the batches.
func lost(err error) {
	fmt.Fprintf(os.Stderr, "error: the data GPU failed: %v\n", err)
	os.Exit(1)
}

// user is one opener of the device.
type user struct {
	*engine.Device
	closed bool
}

func (u *user) Close() error {
	process.mu.Lock()
	defer process.mu.Unlock()
	if u.closed {
		return nil
	}
	u.closed = true
	if process.users--; process.users > 0 {
		return nil
	}
	d := process.device
	process.device = nil
	return d.Close()
}
