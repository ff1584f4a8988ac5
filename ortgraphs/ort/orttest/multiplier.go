package orttest

/*
#cgo LDFLAGS: -lm
#include <signal.h>

#include "convolve.h"

static multiply_handle handle;
static uintptr_t handle_address(void) { return (uintptr_t)&handle; }
static uintptr_t set_stream_address(void) { return (uintptr_t)multiply_set_stream; }
static uintptr_t set_workspace_address(void) { return (uintptr_t)multiply_set_workspace; }
static uintptr_t batched_address(void) { return (uintptr_t)multiply_batched; }
static uintptr_t linear_address(void) { return (uintptr_t)multiply_linear; }
static uintptr_t check_address(void) { return (uintptr_t)multiply_check; }
static uintptr_t forget_address(void) { return (uintptr_t)multiply_forget; }
static uintptr_t convolve_address(void) { return (uintptr_t)convolve; }
static uintptr_t convolve_check_address(void) { return (uintptr_t)convolve_check; }

// flags are those with which a signal is handled.
static int flags(int number) {
	struct sigaction a = {0};
	sigaction(number, NULL, &a);
	return a.sa_flags;
}
*/
import "C"

import "github.com/xtts-host/xtts-host/ortgraphs/ort"

// Multiplier computes products on the CPU, before its function returns.
var Multiplier = &ort.Multiplier{
	Handle: uintptr(C.handle_address()), SetStream: uintptr(C.set_stream_address()),
	SetWorkspace: uintptr(C.set_workspace_address()), GemmBatched: uintptr(C.batched_address()),
	Linear: uintptr(C.linear_address()), Check: uintptr(C.check_address()), Forget: uintptr(C.forget_address()),
}

// Convolver computes convolutions on the CPU, before its function returns.
var Convolver = &ort.Convolver{Convolve: uintptr(C.convolve_address()), Check: uintptr(C.convolve_check_address())}

// WrongConvolver is one whose results of a pass are 1 % too large, or lack a tap.
func WrongConvolver(pass ort.ConvolutionPass) *ort.Convolver {
	return &ort.Convolver{Handle: uintptr(pass) + 1, Convolve: Convolver.Convolve, Check: Convolver.Check}
}

// RefusingConvolver is one that can compute nothing in a pass.
func RefusingConvolver(pass ort.ConvolutionPass) *ort.Convolver {
	const first = C.CONVOLVE_PASSES + 1
	return &ort.Convolver{Handle: uintptr(pass) + first, Convolve: Convolver.Convolve, Check: Convolver.Check}
}

// LargeConvolver is one that needs more memory than what sums take.
func LargeConvolver() *ort.Convolver {
	return &ort.Convolver{Handle: C.CONVOLVE_LARGE, Convolve: Convolver.Convolve, Check: Convolver.Check}
}

// Handlers are the flags with which the process handles each signal.
func Handlers() (flags [32]int) {
	for i := 1; i < len(flags); i++ {
		flags[i] = int(C.flags(C.int(i)))
	}
	return flags
}
