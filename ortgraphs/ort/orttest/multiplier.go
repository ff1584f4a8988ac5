package orttest

/*
#cgo LDFLAGS: -lm
#include "multiply.h"

static multiply_handle handle;
static uintptr_t handle_address(void) { return (uintptr_t)&handle; }
static uintptr_t set_stream_address(void) { return (uintptr_t)multiply_set_stream; }
static uintptr_t set_workspace_address(void) { return (uintptr_t)multiply_set_workspace; }
static uintptr_t batched_address(void) { return (uintptr_t)multiply_batched; }
static uintptr_t linear_address(void) { return (uintptr_t)multiply_linear; }
static uintptr_t check_address(void) { return (uintptr_t)multiply_check; }
static uintptr_t forget_address(void) { return (uintptr_t)multiply_forget; }
*/
import "C"

import "github.com/xtts-host/xtts-host/ortgraphs/ort"

// Multiplier computes products on the CPU, before its function returns.
var Multiplier = &ort.Multiplier{
	Handle: uintptr(C.handle_address()), SetStream: uintptr(C.set_stream_address()),
	SetWorkspace: uintptr(C.set_workspace_address()), GemmBatched: uintptr(C.batched_address()),
	Linear: uintptr(C.linear_address()), Check: uintptr(C.check_address()), Forget: uintptr(C.forget_address()),
}
