// Package cublas opens NVIDIA's library of matrix products for a GPU:
//
//	library, err := cublas.Open(ort.Library())
//	...
//	h, err := library.NewHandle() // in the current context of the thread
//	...
//	defer h.Close()
//
// It is part of every build: Open loads libcublas.so.13, which ONNX Runtime's library with CUDA needs in any case.
package cublas

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct {
	int (*Create_v2)(void **handle);
	int (*Destroy_v2)(void *handle);
	void *SetStream_v2, *SetWorkspace_v2, *GemmBatchedEx;
} cublas;

// cublas_open returns why the library cannot be loaded, or the name of a function that it lacks.
static const char *cublas_open(const char *name, cublas *c, const char **lacks) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!lib) return dlerror();
#define FIND(name) \
	if (!(*(void **)&c->name = dlsym(lib, "cublas" #name))) *lacks = "cublas" #name;
	FIND(Create_v2)
	FIND(Destroy_v2)
	FIND(SetStream_v2)
	FIND(SetWorkspace_v2)
	FIND(GemmBatchedEx)
	return NULL;
}

static int cublas_create(const cublas *c, uintptr_t *handle) { return c->Create_v2((void **)handle); }
static int cublas_destroy(const cublas *c, uintptr_t handle) { return c->Destroy_v2((void *)handle); }
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"
)

// Name is the name of the library. CUDA 13 has this one in all its releases.
const Name = "libcublas.so.13"

// Library is a loaded cuBLAS, which stays loaded.
type Library struct{ calls C.cublas }

// Open loads cuBLAS from the folder of another library, such as ONNX Runtime's, or, if it is not there, from where the dynamic loader
// finds it. A name without a folder has no such folder.
func Open(beside string) (*Library, error) {
	name := Name
	if folder, _ := filepath.Split(beside); folder != "" {
		if file, err := filepath.Abs(folder + Name); err == nil && exists(file) {
			name = file
		}
	}
	runtime.LockOSThread() // dlerror is per thread
	defer runtime.UnlockOSThread()
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	l := &Library{}
	var lacks *C.char
	switch problem := C.cublas_open(cname, &l.calls, &lacks); {
	case problem != nil:
		return nil, errors.New(C.GoString(problem))
	case lacks != nil:
		return nil, fmt.Errorf("%s has no %s", name, C.GoString(lacks))
	}
	return l, nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// SetStream, SetWorkspace and GemmBatched are the addresses of cublasSetStream, cublasSetWorkspace and cublasGemmBatchedEx.
func (l *Library) SetStream() uintptr    { return uintptr(l.calls.SetStream_v2) }
func (l *Library) SetWorkspace() uintptr { return uintptr(l.calls.SetWorkspace_v2) }
func (l *Library) GemmBatched() uintptr  { return uintptr(l.calls.GemmBatchedEx) }

// Handle is a cublasHandle_t. One thread at a time may use it.
type Handle struct {
	library *Library
	address C.uintptr_t
}

// NewHandle returns a handle of the CUDA context that is current on the calling thread. Close it in the same context.
func (l *Library) NewHandle() (*Handle, error) {
	h := &Handle{library: l}
	if status := C.cublas_create(&l.calls, &h.address); status != 0 {
		return nil, fmt.Errorf("cublasCreate: cuBLAS failure %d", status)
	}
	return h, nil
}

// Pointer is the cublasHandle_t.
func (h *Handle) Pointer() uintptr { return uintptr(h.address) }

// Close destroys the handle. It is idempotent.
func (h *Handle) Close() error {
	if h.address == 0 {
		return nil
	}
	status := C.cublas_destroy(&h.library.calls, h.address)
	if h.address = 0; status != 0 {
		return fmt.Errorf("cublasDestroy: cuBLAS failure %d", status)
	}
	return nil
}
