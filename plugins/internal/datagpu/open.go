//go:build cuda

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

// process is the process's one device: it sees no other GPU, and a context takes half a GiB of the card.
var process struct {
	mu     sync.Mutex
	device *engine.Device // nil while nobody has it open
	uuid   string
	users  int
}

// Open returns the GPU cfg.Device, held to cfg.MemoryLimit. Whoever opens it again in the same process shares it, and its limit.
// ONNX Runtime is the library that the environment names, as the host does (ort.LibraryEnv).
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
	// A test's driver keeps a GPU's memory on the host: there the CPU computes on it.
	fake := os.Getenv("XTTS_HOST_TEST_FAKE_DRIVER") != ""
	if err := ort.Init(ort.Options{CUDA: !fake}); err != nil {
		return nil, err
	}
	context, err := cuda.Open(cfg.Device)
	if err != nil {
		return nil, err
	}
	d, err := engine.New(engine.Config{Context: context, OnHost: fake, MemoryLimit: int(cfg.MemoryLimit), Lost: lost})
	if err != nil {
		return nil, errors.Join(err, context.Close())
	}
	return d, nil
}

// lost ends the process: the host starts another one, whose context is good, and builds the batches again.
func lost(err error) {
	fmt.Fprintf(os.Stderr, "error: the data GPU failed: %v\n", err)
	os.Exit(1)
}

// user is one of those who opened the device.
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
