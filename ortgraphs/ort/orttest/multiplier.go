package orttest

/*
#include "multiply.h"

static multiply_handle handle;
static uintptr_t handle_address(void) { return (uintptr_t)&handle; }
static uintptr_t set_stream_address(void) { return (uintptr_t)multiply_set_stream; }
static uintptr_t set_workspace_address(void) { return (uintptr_t)multiply_set_workspace; }
static uintptr_t batched_address(void) { return (uintptr_t)multiply_batched; }
*/
import "C"

import "github.com/xtts-host/xtts-host/ortgraphs/ort"

// Multiplier computes products on the CPU, before its function returns.
var Multiplier = &ort.Multiplier{
	Handle: uintptr(C.handle_address()), SetStream: uintptr(C.set_stream_address()),
	SetWorkspace: uintptr(C.set_workspace_address()), GemmBatched: uintptr(C.batched_address()),
}
