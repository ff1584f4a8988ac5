package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/watch"
)

// Relieve shrinks the arenas, for a reason that the watch has found. Call it between two windows.
func (s *Session) Relieve(reason string) error {
	if err := s.sizeArenas(); err != nil { // their present size is the peak
		return err
	}
	err := errors.Join(s.Model.Shrink(), s.Optimizers.Shrink())
	if errors.Is(err, train.ErrCaptured) {
		s.log.Warn(fmt.Sprintf("the arenas of training cannot shrink although %s: %v; use --cuda-graphs off", reason, train.ErrCaptured))
		return nil
	}
	if err == nil {
		s.log.Warn(fmt.Sprintf("training releases unused arena memory: %s", reason))
	}
	return err
}

// sizeArenas records the largest size of ONNX Runtime's arenas.
func (s *Session) sizeArenas() error {
	model, err := s.Model.ArenaBytes()
	if err != nil {
		return err
	}
	optimizer, err := s.Optimizers.ArenaBytes()
	s.arenas = max(s.arenas, model+optimizer)
	return err
}

// Usage returns the use of the devices in a run of that wall time: the CPU, and the GPUs by role. On a GPU, the host's
// process has the data role on the CPU, because it decodes.
func (s *Session) Usage(wall time.Duration, figures []watch.Figures) ([]report.Memory, []report.Utilization, error) {
	role := "model"
	if s.plan.OnGPU() {
		role = "data"
	}
	process, busy, err := report.CPU(role, wall)
	if err == nil {
		err = s.sizeArenas()
	}
	if err != nil {
		return nil, nil, err
	}
	weights, grads, slots := s.Model.Bytes()
	arenas := int64(weights + grads + slots + s.Optimizers.Bytes() + s.arenas)
	if !s.plan.OnGPU() {
		process.ArenaPeakBytes = arenas
	}
	memory, utilization := []report.Memory{process}, []report.Utilization{busy}
	for _, f := range figures {
		name, role := f.Place.GPU.String(), strings.ToLower(f.Role)
		m := report.Memory{Device: name, Role: role, LimitBytes: f.Place.Limit, ProcessPeakBytes: f.Peak}
		if role == "model" {
			m.ArenaPeakBytes = arenas
		}
		memory = append(memory, m)
		utilization = append(utilization, report.Utilization{Device: name, Role: role, Mean: f.Busy, Std: f.BusyStd, Samples: f.Samples})
	}
	return memory, utilization, nil
}
