package fused

import (
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Options are those with which NVRTC compiles a source.
var Options = cudac.Options

// Compiler compiles programs for a device and loads them.
type Compiler interface {
	// Compile returns loaded programs. Their order does not matter. A program that cannot be compiled or loaded is no
	// error of Compile, but of its functions.
	Compile(sources []string) (Programs, error)
}

// Programs are loaded programs. They must stay open until the sessions that launch them are closed. These sessions run
// one at a time, on one stream: kernels count their blocks in variables of the program.
type Programs interface {
	// Launch is the address of the function that launches a kernel, as in [ort.Kernels].
	Launch() uintptr
	// CooperativeLaunch is that of the function that launches one whose blocks wait for each other.
	CooperativeLaunch() uintptr
	// Function returns the address of a function of a source, whose launches may ask for so many bytes of shared
	// memory. The error says why the program could not be compiled or loaded.
	Function(source, name string, shared int) (uintptr, error)
	// Multiplier is the library that computes many products with one launch, or why there is none.
	Multiplier() (*ort.Multiplier, error)
	// Convolver is the library that computes convolutions, or why there is none.
	Convolver() (*ort.Convolver, error)
	Close() error
}

// unloaded are the programs of a draft.
type unloaded struct{}

func (unloaded) Launch() uintptr                               { return 0 }
func (unloaded) CooperativeLaunch() uintptr                    { return 0 }
func (unloaded) Function(string, string, int) (uintptr, error) { return 0, nil }
func (unloaded) Multiplier() (*ort.Multiplier, error)          { return nil, nil }
func (unloaded) Convolver() (*ort.Convolver, error)            { return nil, nil }
func (unloaded) Close() error                                  { return nil }
