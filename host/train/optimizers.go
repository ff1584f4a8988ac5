package train

import (
	"cmp"
	"errors"

	"github.com/xtts-host/xtts-host/host/train/checkpoint"
)

// Optimizers are those of a model's players, in the order in which these train.
type Optimizers []*Optimizer

// each calls move for every optimizer.
func (all Optimizers) each(move func(*Optimizer) error) error {
	for _, o := range all {
		if err := move(o); err != nil {
			return err
		}
	}
	return nil
}

// Pull updates Moments. On the CPU they are always up to date.
func (all Optimizers) Pull() error { return all.each((*Optimizer).Pull) }

// Push copies what was written to Moments back to the device.
func (all Optimizers) Push() error { return all.each((*Optimizer).Push) }

// Shrink is that of every optimizer.
func (all Optimizers) Shrink() error {
	return all.each(func(o *Optimizer) error { return o.Shrink() })
}

// Moments returns the state of all optimizers.
func (all Optimizers) Moments() (out []checkpoint.Tensor) {
	for _, o := range all {
		out = append(out, o.Moments()...)
	}
	return out
}

// Gradients is that of every optimizer.
func (all Optimizers) Gradients() (out []checkpoint.Tensor, err error) {
	err = all.each(func(o *Optimizer) error {
		own, err := o.Gradients()
		out = append(out, own...)
		return err
	})
	return out, err
}

// Incomplete reports whether an update of any player may be incomplete, or those of the players after it.
func (all Optimizers) Incomplete() bool {
	for _, o := range all {
		if o.Incomplete() {
			return true
		}
	}
	return false
}

// Bytes returns the memory of states and accumulated gradients.
func (all Optimizers) Bytes() (n int) {
	for _, o := range all {
		n += o.Bytes()
	}
	return n
}

// ArenaBytes returns the GPU memory that ONNX Runtime's arenas hold now for intermediate values; 0 on the CPU.
func (all Optimizers) ArenaBytes() (n int, err error) {
	err = all.each(func(o *Optimizer) error {
		own, err := o.ArenaBytes()
		n += own
		return err
	})
	return n, err
}

// Prepare prepares every optimizer, to be called after Model.Prepare.
func (all Optimizers) Prepare() (p Prepared, err error) {
	err = all.each(func(o *Optimizer) error {
		own, err := o.Prepare()
		p.Graphs, p.ArenaBytes, p.Time = p.Graphs+own.Graphs, p.ArenaBytes+own.ArenaBytes, p.Time+own.Time
		p.Fault = cmp.Or(p.Fault, own.Fault)
		return err
	})
	return p, err
}

// InKernels reports whether every update is one kernel on the GPU, and the reason if the kernel of an optimizer is not
// used.
func (all Optimizers) InKernels() (yes bool, fault error) {
	yes = true
	for _, o := range all {
		own, reason := o.InKernel()
		yes, fault = yes && own, cmp.Or(fault, reason)
	}
	return yes, fault
}

// Close closes every optimizer. It is idempotent.
func (all Optimizers) Close() error {
	var errs []error
	for _, o := range all {
		errs = append(errs, o.Close())
	}
	return errors.Join(errs...)
}
