// Package library asks the dynamic loader for shared libraries by name, such as "libcudart.so.13": whether it finds and
// loads them, and from which file. Loading runs the library's initializers in this process, so use a separate process
// for untrusted or fragile libraries.
package library

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

// The library stays loaded: what it may have started runs on.
static const char *find(const char *name, const char **path) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map;
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0)
		return dlerror();
	*path = map->l_name;
	return NULL;
}
*/
import "C"

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"unsafe"
)

// Find loads a library and returns its file. The error is the loader's, which names the library.
func Find(name string) (path string, err error) {
	runtime.LockOSThread() // dlerror is per thread
	defer runtime.UnlockOSThread()
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	var cpath *C.char
	if message := C.find(cname, &cpath); message != nil {
		return "", errors.New(C.GoString(message))
	}
	return C.GoString(cpath), nil
}

// Beside returns the file of a library in the folder of another one, or only its name if that folder, or a file in it,
// is not there: then the loader looks for it. A name without a folder has no such folder.
func Beside(name, other string) string {
	if folder, _ := filepath.Split(other); folder != "" {
		if file, err := filepath.Abs(folder + name); err == nil && exists(file) {
			return file
		}
	}
	return name
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}
