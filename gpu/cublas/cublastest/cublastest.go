// Package cublastest calls functions of package cublas by their addresses, as ONNX Runtime's nodes do.
package cublastest

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include "../linear.h"

typedef int linear(lt_handle *, void **, int, int, int, int, int, const void *, int, const void *, int, const void *, const void *, int, void *,
                   void *, int, int, void *, size_t, void *);
typedef void forget(void *);

enum { R_32F = 0, COMPUTE_32F = 68 };

static int call(uintptr_t address, uintptr_t handle, void **plan, int transa, int transb, int m, int n, int k, float *a, float *b, float *bias,
                float *residual, int gelu, float *sum, float *c, void *stream) {
	static char workspace[256] __attribute__((aligned(256)));
	return ((linear *)address)((lt_handle *)handle, plan, transa, transb, m, n, k, a, transa ? k : m, b, transb ? n : k, bias, residual, gelu, sum,
	                           c, R_32F, COMPUTE_32F, workspace, sizeof workspace, stream);
}
static void release(uintptr_t address, void *plan) { ((forget *)address)(plan); }

// new_stream returns a stream of the first card, whose context becomes that of the thread, or NULL.
static void *new_stream(void) {
	void *lib = dlopen("libcuda.so.1", RTLD_LAZY), *context = NULL, *stream = NULL;
	int (*init)(unsigned) = dlsym(lib, "cuInit");
	int (*retain)(void **, int) = dlsym(lib, "cuDevicePrimaryCtxRetain");
	int (*set)(void *) = dlsym(lib, "cuCtxSetCurrent");
	int (*create)(void **, unsigned) = dlsym(lib, "cuStreamCreate");
	return init(0) || retain(&context, 0) || set(context) || create(&stream, 0) ? NULL : stream;
}

static void record(bool on) { *(int *)dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuFakeCapturing") = on; }

// runs returns how often the fake cuBLASLt has run an algorithm.
static int runs(int algorithm) {
	void *lib = dlopen("libcublasLt.so.13", RTLD_LAZY | RTLD_NOLOAD);
	int *counts = lib ? dlsym(lib, "cublasLtFakeRuns") : NULL;
	return counts ? counts[algorithm] : -1;
}
*/
import "C"

import (
	"runtime"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu/cublas"
)

// Record has the streams of the fake driver say that they record what is queued.
func Record(on bool) { C.record(C.bool(on)) }

// Product is op(A) op(B) + bias + residual, without those that are nil, in f32, of matrices in columns: M x K and K x
// N.
type Product struct {
	Transposed [2]bool
	M, N, K    int
	A, B, Bias []float32
	Residual   []float32 // M x N
	Gelu       bool
	// Sum, unless nil, gets the matrix without GELU, C the result.
	Sum, C []float32
	Stream Stream
}

// Stream is a stream of the fake card, for which the calling thread has a context.
type Stream struct{ address unsafe.Pointer }

// NewStream returns one, which lives as long as the program.
func NewStream() Stream { return Stream{C.new_stream()} }

// Runs returns how often the fake cuBLASLt has run its algorithm 1 or 2.
func Runs(algorithm int) int { return int(C.runs(C.int(algorithm))) }

// Run computes a product as often as times says, with one plan, in host memory: with the fake cuBLAS. It returns the
// status.
func Run(l *cublas.Library, h *cublas.Handle, p Product, times int) (status int) {
	number := func(b bool) C.int {
		if b {
			return 1
		}
		return 0
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	address := func(x []float32) *C.float {
		if x == nil {
			return nil
		}
		pin.Pin(&x[0])
		return (*C.float)(unsafe.Pointer(&x[0]))
	}
	var plan unsafe.Pointer
	for range times {
		if status != 0 {
			break
		}
		status = int(C.call(C.uintptr_t(l.Linear()), C.uintptr_t(h.LtPointer()), &plan, number(p.Transposed[0]),
			number(p.Transposed[1]), C.int(p.M), C.int(p.N), C.int(p.K), address(p.A), address(p.B), address(p.Bias),
			address(p.Residual), number(p.Gelu), address(p.Sum), address(p.C), p.Stream.address))
	}
	C.release(C.uintptr_t(l.ForgetLinear()), plan)
	return status
}
