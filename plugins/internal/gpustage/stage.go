package gpustage

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/shared/stage"
)

// Handle holds a stage's device and program: the part of Configure, Attach and Close that does not depend on the
// computation. The zero value belongs to a stage on the CPU.
type Handle struct {
	device  Device
	program Program
}

// Open opens the device of cfg and loads the graph. The stage must close the handle. Open fails if open is nil.
func (h *Handle) Open(open Opener, cfg *stage.Config, g Graph) (err error) {
	if open == nil {
		return fmt.Errorf("stage %s was given %s but cannot open a GPU", cfg.Stage, cfg.Device)
	}
	if h.device, err = open(cfg); err != nil {
		return err
	}
	if h.program, err = h.device.Load(g); err != nil {
		return errors.Join(err, h.device.Close())
	}
	cfg.Log.Debug("computing on the data GPU", "graph", g.Name, "device", cfg.Device)
	return nil
}

// Program returns the loaded program, or nil on the CPU.
func (h *Handle) Program() Program { return h.program }

// Attach pins the memory of all batches, as in stage.Attacher.
func (h *Handle) Attach(memory []byte) error {
	if h.program == nil {
		return nil
	}
	return h.device.Pin(memory)
}

// Close releases the program and the device. On the CPU it does nothing.
func (h *Handle) Close() error {
	if h.program == nil {
		return nil
	}
	err := errors.Join(h.program.Close(), h.device.Close())
	h.program, h.device = nil, nil
	return err
}
