//go:build !cuda

package cuda

import "github.com/xtts-host/xtts-host/gpu"

// Built reports whether this build has CUDA.
const Built = false

// Open returns an error that matches gpu.ErrNotBuilt.
func Open(uuid string) (gpu.Context, error) { return nil, &notBuilt{"open GPU " + uuid} }

// DriverVersion returns an error that matches gpu.ErrNotBuilt.
func DriverVersion() (string, error) { return "", &notBuilt{"ask for the CUDA driver's version"} }

type notBuilt struct{ what string }

func (e *notBuilt) Error() string { return e.what + ": " + gpu.ErrNotBuilt.Error() }
func (e *notBuilt) Unwrap() error { return gpu.ErrNotBuilt }
func (e *notBuilt) Hint() string  { return "build with CUDA: make build CUDA=1" }
