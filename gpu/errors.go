package gpu

import "errors"

// ErrOutOfMemory matches errors of a card that has no room for what was asked.
var ErrOutOfMemory = errors.New("out of GPU memory")

// ErrNoKernel matches errors of a driver that cannot make a kernel from PTX for its card: one that is too old for it, or has no compiler.
var ErrNoKernel = errors.New("no kernel for this GPU")

// ErrNotBuilt matches errors of a program that was built without CUDA. It has a hint, which names the build line.
var ErrNotBuilt error = &AdvisedError{
	Reason: "this build has no CUDA",
	Advice: "make build CUDA=1 makes one that has",
}

// ErrClosed matches errors of calls on what was closed before.
var ErrClosed = errors.New("already closed")

// AdvisedError is an error with the next step for the person who reads it.
type AdvisedError struct {
	Reason string
	Advice string // without a full stop
}

func (e *AdvisedError) Error() string { return e.Reason }

// Hint returns the next step, which the command line prints on a line of its own.
func (e *AdvisedError) Hint() string { return e.Advice }
