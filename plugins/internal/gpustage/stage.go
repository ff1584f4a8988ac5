package gpustage

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/shared/stage"
)

// Seat is a stage's place on the device: the part of Configure, Attach and Close that does not depend on what it computes. The zero
// value is that of a stage on the CPU.
type Seat struct {
	device  Device
	program Program
}

// Take opens the device of cfg and loads the graph. The stage closes the seat. Without an opener no device is taken.
func (s *Seat) Take(open Opener, cfg *stage.Config, g Graph) (err error) {
	if open == nil {
		return fmt.Errorf("stage %s was given %s, and nothing to open it with", cfg.Stage, cfg.Device)
	}
	if s.device, err = open(cfg); err != nil {
		return err
	}
	if s.program, err = s.device.Load(g); err != nil {
		return errors.Join(err, s.device.Close())
	}
	cfg.Log.Debug("computing on the data GPU", "graph", g.Name, "device", cfg.Device)
	return nil
}

// Program is what was loaded; nil on the CPU.
func (s *Seat) Program() Program { return s.program }

// Attach pins the memory of batches: it is that of stage.Attacher.
func (s *Seat) Attach(memory []byte) error {
	if s.program == nil {
		return nil
	}
	return s.device.Pin(memory)
}

// Close gives up program and device. On the CPU it does nothing.
func (s *Seat) Close() error {
	if s.program == nil {
		return nil
	}
	err := errors.Join(s.program.Close(), s.device.Close())
	s.program, s.device = nil, nil
	return err
}
