// Package cudnn opens NVIDIA's library of convolutions for a GPU:
//
//	library, err := cudnn.Open(ort.Library())
//	...
//	h, err := library.NewHandle(true, false) // in the current context of the thread
//	...
//	defer h.Close()
//
// It is part of every build: Open loads libcudnn.so.9, which ONNX Runtime's library with CUDA needs in any case, and
// the driver, whose events measure algorithms.
package cudnn

/*
#cgo LDFLAGS: -ldl
#include <stdint.h>
#include <stdlib.h>

#include "convolve.h"

static size_t version(const cudnn_library *l) { return l->GetVersion(); }
static uintptr_t convolve_address(void) { return (uintptr_t)cudnn_convolve; }
static uintptr_t check_address(void) { return (uintptr_t)cudnn_check; }
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu/library"
)

// Name is the name of the library. cuDNN 9 has it in all its releases.
const Name = "libcudnn.so.9"

const driver = "libcuda.so.1"

// Library is a loaded cuDNN, which stays loaded.
type Library struct {
	calls *C.cudnn_library // in C memory, like the library for as long as the program runs
}

// Open loads cuDNN from the folder of another library, such as ONNX Runtime's, or, if it is not there, from where the
// dynamic loader finds it. A name without a folder has no such folder.
func Open(beside string) (*Library, error) {
	runtime.LockOSThread() // dlerror is per thread
	defer runtime.UnlockOSThread()
	l := &Library{(*C.cudnn_library)(C.calloc(1, C.sizeof_cudnn_library))}
	keep, restore := library.HandlerFunctions()
	l.calls.keep_handlers, l.calls.restore_handlers = (*[0]byte)(keep), (*[0]byte)(restore)
	err := load(library.Beside(Name, beside), func(name *C.char, lacks **C.char) *C.char {
		return C.cudnn_open(name, l.calls, lacks)
	})
	if err == nil {
		err = load(driver, func(name *C.char, lacks **C.char) *C.char {
			return C.cudnn_open_driver(name, l.calls, lacks)
		})
	}
	if err != nil {
		C.free(unsafe.Pointer(l.calls))
		return nil, err
	}
	return l, nil
}

// load loads one library with a function that returns why it cannot be loaded, or sets the name of a function that it
// lacks.
func load(name string, open func(name *C.char, lacks **C.char) *C.char) error {
	cname := C.CString(name)
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

// Version is the library's, as cudnnGetVersion has it: 91900 is 9.19.0.
func (l *Library) Version() int { return int(C.version(l.calls)) }

// Convolve and Check are the addresses of cudnn_convolve and cudnn_check in convolve.h.
func (l *Library) Convolve() uintptr { return uintptr(C.convolve_address()) }
func (l *Library) Check() uintptr    { return uintptr(C.check_address()) }

// Handle is a cudnnHandle_t, with the algorithms that were chosen. One thread at a time may use it.
type Handle struct {
	handle *C.cudnn_handle // in C memory; nil once it is closed
}

// NewHandle returns a handle of the CUDA context that is current on the calling thread. Close it in the same context.
// If measured, a convolution gets the fastest of the algorithms that cuDNN proposes, so another run may take another
// one; otherwise it gets the first. Each gives the same bits in every run. With tf32, operands in f32 may be rounded to
// TF32.
func (l *Library) NewHandle(measured, tf32 bool) (*Handle, error) {
	h := &Handle{(*C.cudnn_handle)(C.calloc(1, C.sizeof_cudnn_handle))}
	h.handle.library = l.calls
	if measured {
		h.handle.measured = 1
	}
	if tf32 {
		h.handle.tf32 = 1
	}
	if status := C.cudnn_new(h.handle); status != 0 {
		C.free(unsafe.Pointer(h.handle))
		return nil, fmt.Errorf("cudnnCreate: cuDNN failure %d", status)
	}
	return h, nil
}

// Pointer is the cudnn_handle of convolve.h. It is valid until Close.
func (h *Handle) Pointer() uintptr { return uintptr(unsafe.Pointer(h.handle)) }

// Close frees the algorithms and destroys the handle. It is idempotent.
func (h *Handle) Close() error {
	if h.handle == nil {
		return nil
	}
	status := C.cudnn_end(h.handle)
	C.free(unsafe.Pointer(h.handle))
	if h.handle = nil; status != 0 {
		return fmt.Errorf("cudnnDestroy: cuDNN failure %d", status)
	}
	return nil
}
