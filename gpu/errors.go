package gpu

import "errors"

// ErrOutOfMemory matches errors of a card without enough free memory.
var ErrOutOfMemory error = outOfMemory{}

type outOfMemory struct{}

func (outOfMemory) Error() string { return "out of GPU memory" }

// ExitStatus is that of a command that fails for want of memory.
func (outOfMemory) ExitStatus() int { return 3 }

// ErrNoKernel matches errors of a driver that cannot use a compiled kernel on its card, because it was compiled for
// another card, or because the driver is too old or has no compiler for PTX.
var ErrNoKernel = errors.New("no kernel for this GPU")

// ErrClosed matches errors of calls on closed values.
var ErrClosed = errors.New("already closed")

// AdvisedError is an error with a hint for the user.
type AdvisedError struct {
	Reason string
	Advice string // without a full stop
}

func (e *AdvisedError) Error() string { return e.Reason }

// Hint returns the hint, which the command line prints on a separate line.
func (e *AdvisedError) Hint() string { return e.Advice }
