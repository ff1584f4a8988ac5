// Package session owns the model and its optimizers on their device.
package session

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/observe/watch"
	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/host/train/device"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Session is the model of a run on its device. It is complete when Open has returned.
type Session struct {
	Device     *device.Device // on the CPU only Deterministic is set
	Model      *train.Model
	Optimizers train.Optimizers
	Fusion     Fusion
	Memory     Memory
	// Join, set before Open, joins the ranks of a run on their devices; nil in a run of one process. Close closes what
	// it returns if that is an io.Closer.
	Join func(train.Device) (train.Ranks, error)

	plan   *plan.Plan
	mode   batch.InputMode
	log    *slog.Logger
	fault  error // why CUDA graphs are off although the host may choose
	arenas int   // largest size of ONNX Runtime's arenas in bytes
	ranks  train.Ranks
	closer io.Closer // ranks, if it has something to close
	sums   train.RankSums
}

// New returns the session of a plan, with nothing open. w watches the GPUs of the run.
func New(p *plan.Plan, mode batch.InputMode, w *watch.Watch, log *slog.Logger) *Session {
	cpu := &device.Device{Device: train.Device{Deterministic: p.Config.Deterministic}}
	return &Session{
		plan: p, mode: mode, log: log, Memory: Memory{plan: p.MemoryFor(p.Slots), watch: w, log: log}, Device: cpu,
	}
}

// Open loads ONNX Runtime and creates the model on its device, for which it pins the ring. On a GPU the calling
// goroutine stays bound to it. After an error, TooLarge may still use what is open, and Close closes it.
func (s *Session) Open(ring []byte) error {
	if err := ort.Init(s.plan.ORT()); err != nil {
		return err
	}
	if s.plan.OnGPU() {
		if err := s.openDevice(ring); err != nil {
			return err
		}
	}
	if s.Join != nil {
		var err error
		if s.ranks, err = s.Join(s.Device.Device); err != nil {
			return err
		}
		s.closer, _ = s.ranks.(io.Closer)
	}
	return s.openModel(s.plan.Slots)
}

// OpenBeside is Open while start, such as the start of the plugins, runs in another goroutine. If Open fails, the
// context of start ends. OpenBeside returns when both are over. If ctx has ended, the error is its cause, and otherwise
// that of TooLarge.
//
// Open stays on the calling goroutine, which has to be the one that trains: ONNX Runtime makes cuBLAS and cuDNN handles
// with their workspaces for each session and thread. With the sessions opened on another thread, the process needed
// 282 MB more (myxtts-base on an H200).
func (s *Session) OpenBeside(ctx context.Context, ring []byte, start func(context.Context) error) error {
	open, cancel := context.WithCancel(ctx)
	defer cancel()
	started := make(chan error, 1)
	go func() { started <- start(open) }()
	err := s.Open(ring)
	if err != nil {
		cancel()
		<-started
	} else {
		err = <-started
	}
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause // the reason for the stop, not its effect
	}
	return s.TooLarge(ctx, err)
}

// openDevice opens the model GPU.
func (s *Session) openDevice(ring []byte) error {
	c := s.plan.Config
	room, err := s.Memory.plan.Room()
	if err != nil {
		return err
	}
	s.Device, err = device.Open(device.Config{
		UUID: s.plan.Placement.Model.GPU.UUID, Ring: ring, MemoryLimit: room, TF32: s.plan.Precision.TF32,
		Deterministic: c.Deterministic,
	})
	if err != nil {
		s.Device = new(device.Device)
		return err
	}
	return nil
}

// openModel makes the model and its optimizers for batches of that size.
func (s *Session) openModel(slots plan.Slots) (err error) {
	threads := s.plan.Threads()
	model := train.ModelConfig{
		Bundle: s.plan.Bundle, Arenas: s.plan.Arenas(), Precision: s.plan.Precision.Graph, Layouts: slots.Layouts,
		Slots: slots.Device, Threads: threads, Device: s.Device.Device, Average: s.plan.Config.EMA,
	}
	if s.plan.OnGPU() && s.plan.Config.CUDAGraphs != config.Off {
		model.CUDAGraphs, model.Capturable = true, device.Capturable(s.plan.Config.Graph, s.plan.Bundle)
	}
	if s.plan.Config.RankSums != config.SumsAfter && !s.plan.Accumulates() {
		model.Ranks, model.SumsBeside = s.ranks, s.plan.Config.RankSums == config.SumsBeside
	}
	model.Fuse.Form.BF16Attention = s.plan.Config.Attention == config.BF16Attention
	if err := addCompiler(s, &model.Fuse); err != nil {
		return err
	}
	if s.Model, err = train.NewModel(model); err != nil {
		return exit.Advise(s.Device.Full(err),
			"the graphs pass the host's checks, but ONNX Runtime refuses them: export the bundle again")
	}
	for i, p := range s.plan.Players {
		o, err := train.NewOptimizer(s.Model, i, p.Optimizer, s.plan.Accumulates(), threads)
		if err != nil {
			return s.Device.Full(err)
		}
		s.Optimizers = append(s.Optimizers, o)
		if s.ranks != nil {
			if err := o.Share(s.ranks); err != nil {
				return s.Device.Full(err)
			}
		}
	}
	if !s.plan.OnGPU() {
		warnOfOneThread(s, threads)
	}
	return nil
}

// closeModel is idempotent, and may be called before openModel.
func (s *Session) closeModel() error {
	errs := []error{s.Optimizers.Close()}
	if s.Model != nil {
		errs = append(errs, s.Model.Close())
	}
	s.Optimizers, s.Model = nil, nil
	return errors.Join(errs...)
}

// Close releases model and device. It is idempotent, and may be called after an Open that failed.
func (s *Session) Close() error {
	defer s.Device.Enter()()
	errs := []error{s.closeModel()}
	if s.closer != nil { // after the CUDA graphs that use it
		errs = append(errs, s.closer.Close())
	}
	s.closer = nil
	return errors.Join(append(errs, s.Device.Close())...)
}
