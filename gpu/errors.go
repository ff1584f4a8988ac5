package gpu

import "errors"

// ErrOutOfMemory matches errors of a card that has no room for what was asked.
var ErrOutOfMemory = errors.New("out of GPU memory")

// ErrNotBuilt matches errors of a program that was built without CUDA.
var ErrNotBuilt = errors.New("this build has no CUDA")

// ErrClosed matches errors of calls on what was closed before.
var ErrClosed = errors.New("already closed")
