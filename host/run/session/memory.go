package session

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/observe/watch"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/memory"
)

// Memory is the memory of the model GPU: its plan, and what was used of it after the trial runs.
type Memory struct {
	plan  memory.Plan
	used  memory.Use
	watch *watch.Watch // reports the memory of the process; nil on the CPU
	log   *slog.Logger
}

// measure returns the memory that training uses at present, with arenas of that size.
func (m *Memory) measure(arenas int) memory.Use {
	use := memory.Use{Graphs: arenas}
	if used, known := m.watch.Used(watch.Model); known {
		use.Process = int(used)
	}
	return use
}

// Left is what ONNX Runtime may use for the graphs of samples, in bytes; 0 without a limit.
func (m *Memory) Left() int { return m.plan.Left(m.used) }

// CheckSamples checks the plan after the longest sentence was spoken, which took so much in ONNX Runtime's arenas.
func (m *Memory) CheckSamples(arenas int) error {
	use := m.measure(m.used.Graphs)
	use.Spoken = &arenas
	m.log.Info("memory of the model GPU with samples", "samples_mb", (m.plan.Samples+arenas)/gpu.MB, "process_mb",
		use.Process/gpu.MB)
	return m.plan.Check(use)
}

// Relieve shrinks the arenas, for a reason that the watch has found. Call it between two windows.
func (s *Session) Relieve(reason string) error {
	if err := s.sizeArenas(); err != nil { // their present size is the peak
		return err
	}
	err := errors.Join(s.Model.Shrink(), s.Optimizers.Shrink())
	if errors.Is(err, train.ErrCaptured) {
		s.log.Warn(fmt.Sprintf("the arenas of training cannot shrink although %s: %v; use --cuda-graphs off", reason,
			train.ErrCaptured))
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
	used, utilization := []report.Memory{process}, []report.Utilization{busy}
	for _, f := range figures {
		name, role := f.Place.GPU.String(), strings.ToLower(f.Role)
		m := report.Memory{Device: name, Role: role, LimitBytes: f.Place.Limit, ProcessPeakBytes: f.Peak,
			MeanBytes: int64(f.Memory.Mean), StdBytes: int64(f.Memory.Std())}
		if role == "model" {
			m.ArenaPeakBytes = arenas
		}
		used = append(used, m)
		utilization = append(utilization,
			report.Utilization{Device: name, Role: role, Mean: f.Busy, Std: f.BusyStd, Samples: f.Samples})
	}
	return used, utilization, nil
}
