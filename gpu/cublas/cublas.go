// Package cublas opens NVIDIA's library of matrix products for a GPU:
//
//	library, err := cublas.Open(ort.Library())
//	...
//	h, err := library.NewHandle(cublas.Large) // in the current context of the thread
//	...
//	defer h.Close()
//
// It is part of every build: Open loads libcublas.so.13 and libcublasLt.so.13, which ONNX Runtime's library with CUDA
// needs in any case, and the driver, whose events measure algorithms.
package cublas

/*
#cgo LDFLAGS: -ldl
#include <stdint.h>
#include <stdlib.h>

#include "open.h"

static int cublas_create(const cublas *c, uintptr_t *handle) { return c->Create_v2((void **)handle); }
static int cublas_destroy(const cublas *c, uintptr_t handle) { return c->Destroy_v2((void *)handle); }
static void set_lt_handle(lt_handle *h, const lt_library *l, uintptr_t handle, double measured) { *h = (lt_handle){l, (void *)handle, measured}; }
static uintptr_t linear_address(void) { return (uintptr_t)lt_linear; }
static uintptr_t check_address(void) { return (uintptr_t)lt_check; }
static uintptr_t forget_address(void) { return (uintptr_t)lt_forget; }
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu/library"
)

// Name and LtName are the names of the libraries. CUDA 13 has these in all its releases.
const (
	Name   = "libcublas.so.13"
	LtName = "libcublasLt.so.13"
)

const driver = "libcuda.so.1"

// Library is a loaded cuBLAS, which stays loaded.
type Library struct {
	calls C.cublas
	lt    *C.lt_library // in C memory, like the library for as long as the program runs
}

// Open loads cuBLAS from the folder of another library, such as ONNX Runtime's, or, if it is not there, from where the
// dynamic loader finds it. A name without a folder has no such folder.
func Open(beside string) (*Library, error) {
	runtime.LockOSThread() // dlerror is per thread
	defer runtime.UnlockOSThread()
	l := &Library{lt: (*C.lt_library)(C.calloc(1, C.sizeof_lt_library))}
	if err := load(Name, beside, func(name *C.char, lacks **C.char) *C.char {
		return C.cublas_open(name, &l.calls, lacks)
	}); err != nil {
		return nil, err
	}
	if err := load(LtName, beside, func(name *C.char, lacks **C.char) *C.char {
		return C.lt_open(name, l.lt, lacks)
	}); err != nil {
		return nil, err
	}
	if err := load(driver, "", func(name *C.char, lacks **C.char) *C.char {
		return C.lt_open_driver(name, l.lt, lacks)
	}); err != nil {
		return nil, err
	}
	return l, nil
}

// load loads one library with a function that returns why it cannot be loaded, or sets the name of a function that it
// lacks.
func load(name, beside string, open func(name *C.char, lacks **C.char) *C.char) error {
	cname := C.CString(library.Beside(name, beside))
	defer C.free(unsafe.Pointer(cname))
	var lacks *C.char
	switch problem := open(cname, &lacks); {
	case problem != nil:
		return errors.New(C.GoString(problem))
	case lacks != nil:
		return fmt.Errorf("%s has no %s", name, C.GoString(lacks))
	}
	return nil
}

// SetStream, SetWorkspace and GemmBatched are the addresses of cublasSetStream, cublasSetWorkspace and
// cublasGemmBatchedEx.
func (l *Library) SetStream() uintptr    { return uintptr(l.calls.SetStream_v2) }
func (l *Library) SetWorkspace() uintptr { return uintptr(l.calls.SetWorkspace_v2) }
func (l *Library) GemmBatched() uintptr  { return uintptr(l.calls.GemmBatchedEx) }

// Linear, CheckLinear and ForgetLinear are the addresses of lt_linear, lt_check and lt_forget in linear.h: products
// with an algorithm of their own, which may add a bias.
func (l *Library) Linear() uintptr       { return uintptr(C.linear_address()) }
func (l *Library) CheckLinear() uintptr  { return uintptr(C.check_address()) }
func (l *Library) ForgetLinear() uintptr { return uintptr(C.forget_address()) }

// Handle is a cublasHandle_t. One thread at a time may use it.
type Handle struct {
	library *Library
	address C.uintptr_t
	lt      *C.lt_handle // in C memory
}

// Large is a number of multiplications that take a few microseconds on a large GPU. The time of a smaller product is
// that of queueing it.
const Large = 1e9

// NewHandle returns a handle of the CUDA context that is current on the calling thread. Close it in the same context.
// For products of at least so many multiplications as measured says, lt_linear takes the fastest of the algorithms that
// cuBLASLt proposes: another run may take another one. For others, and for all if it is 0, it takes the first.
func (l *Library) NewHandle(measured float64) (*Handle, error) {
	h := &Handle{library: l}
	if status := C.cublas_create(&l.calls, &h.address); status != 0 {
		return nil, fmt.Errorf("cublasCreate: cuBLAS failure %d", status)
	}
	h.lt = (*C.lt_handle)(C.malloc(C.sizeof_lt_handle))
	C.set_lt_handle(h.lt, l.lt, h.address, C.double(measured))
	return h, nil
}

// Pointer is the cublasHandle_t.
func (h *Handle) Pointer() uintptr { return uintptr(h.address) }

// LtPointer is the lt_handle of linear.h. It is valid until Close.
func (h *Handle) LtPointer() uintptr { return uintptr(unsafe.Pointer(h.lt)) }

// Close destroys the handle. It is idempotent.
func (h *Handle) Close() error {
	if h.address == 0 {
		return nil
	}
	status := C.cublas_destroy(&h.library.calls, h.address)
	C.lt_forget_choices(h.lt)
	C.free(unsafe.Pointer(h.lt))
	h.lt = nil
	if h.address = 0; status != 0 {
		return fmt.Errorf("cublasDestroy: cuBLAS failure %d", status)
	}
	return nil
}
