package nvrtc

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>

typedef struct _nvrtcProgram *program;

// The functions of nvrtc.h that are used, with their arguments. Each returns an nvrtcResult, which is 0 on success.
#define CALLS(CALL) \
	CALL(Version, int *major, int *minor) \
	CALL(GetNumSupportedArchs, int *count) \
	CALL(GetSupportedArchs, int *archs) \
	CALL(CreateProgram, program *p, const char *source, const char *name, int headers, const char *const *contents, const char *const *names) \
	CALL(CompileProgram, program p, int count, const char *const *options) \
	CALL(GetProgramLogSize, program p, size_t *size) \
	CALL(GetProgramLog, program p, char *log) \
	CALL(GetCUBINSize, program p, size_t *size) \
	CALL(GetCUBIN, program p, char *image) \
	CALL(GetPTXSize, program p, size_t *size) \
	CALL(GetPTX, program p, char *image) \
	CALL(DestroyProgram, program *p)

typedef struct {
#define FIELD(name, ...) int (*name)(__VA_ARGS__);
	CALLS(FIELD)
	const char *(*GetErrorString)(int result);
} nvrtc;

// nvrtc_open returns the library's file, or NULL and why it cannot be loaded, or which function it lacks.
static const char *nvrtc_open(const char *name, nvrtc *n, const char **problem, const char **lacks) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map;
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		*problem = dlerror();
		return NULL;
	}
#define FIND(name, ...) \
	if (!(*(void **)&n->name = dlsym(lib, "nvrtc" #name))) *lacks = "nvrtc" #name;
	CALLS(FIND)
	FIND(GetErrorString)
	if (!*lacks) return map->l_name;
	dlclose(lib);
	return NULL;
}

// nvrtc_preload loads a library that NVRTC opens by its name, and returns why it cannot be.
static const char *nvrtc_preload(const char *name) { return dlopen(name, RTLD_LAZY | RTLD_GLOBAL) ? NULL : dlerror(); }

// nvrtc_archs returns an array that the caller frees.
static int nvrtc_archs(const nvrtc *n, int *count, int **archs) {
	int result = n->GetNumSupportedArchs(count);
	if (result) return result;
	*archs = malloc((*count + 1) * sizeof **archs);
	return n->GetSupportedArchs(*archs);
}

static int nvrtc_version(const nvrtc *n, int *major, int *minor) { return n->Version(major, minor); }
static const char *nvrtc_message(const nvrtc *n, int result) { return n->GetErrorString(result); }

// nvrtc_compile sets *out to the image, or to the log if the compiler refuses the source. The caller frees it.
static int nvrtc_compile(const nvrtc *n, const char *source, int count, char **options, int ptx, char **out, size_t *size) {
	program p;
	int result = n->CreateProgram(&p, source, "kernel.cu", 0, NULL, NULL);
	if (result) return result;
	result = n->CompileProgram(p, count, (const char *const *)options);
	int (*measure)(program, size_t *) = result ? n->GetProgramLogSize : ptx ? n->GetPTXSize : n->GetCUBINSize;
	int (*get)(program, char *) = result ? n->GetProgramLog : ptx ? n->GetPTX : n->GetCUBIN;
	int read = measure(p, size);
	if (!read && (*out = malloc(*size + 1))) read = get(p, *out);
	if (!*out || read) *size = 0;
	n->DestroyProgram(&p);
	return result ? result : read;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unsafe"
)

// This is the only file of the package with C code.

func open(name string) (*Compiler, error) {
	runtime.LockOSThread() // dlerror is per thread
	defer runtime.UnlockOSThread()
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	l := new(library)
	var problem, lacks *C.char
	path := C.nvrtc_open(cname, &l.calls, &problem, &lacks)
	switch {
	case lacks != nil:
		return nil, fmt.Errorf("%s has no %s", name, C.GoString(lacks))
	case path == nil:
		return nil, errors.New(C.GoString(problem))
	}
	c := &Compiler{path: C.GoString(path), compile: l.compile}
	var major, minor, count C.int
	if err := l.check("nvrtcVersion", C.nvrtc_version(&l.calls, &major, &minor)); err != nil {
		return nil, err
	}
	c.major, c.minor = int(major), int(minor)
	if err := preload(c); err != nil {
		return nil, err
	}
	var archs *C.int
	defer func() { C.free(unsafe.Pointer(archs)) }()
	if err := l.check("nvrtcGetSupportedArchs", C.nvrtc_archs(&l.calls, &count, &archs)); err != nil {
		return nil, err
	}
	for _, a := range unsafe.Slice(archs, count) {
		c.known = append(c.known, int(a))
	}
	slices.Sort(c.known)
	return c, nil
}

// preload loads the library of NVRTC's headers and device functions. NVRTC opens it by its name, but the dynamic loader
// does not search NVRTC's folder for it.
func preload(c *Compiler) error {
	name := "libnvrtc-builtins.so." + c.Version()
	var reasons []string
	for _, path := range []string{filepath.Join(filepath.Dir(c.path), name), name} {
		cpath := C.CString(path)
		reason := C.nvrtc_preload(cpath)
		C.free(unsafe.Pointer(cpath))
		if reason == nil {
			return nil
		}
		reasons = append(reasons, C.GoString(reason))
	}
	return fmt.Errorf("%s needs %s: %s", c.path, name, strings.Join(reasons, "; "))
}

// library has the functions of a loaded NVRTC.
type library struct{ calls C.nvrtc }

func (l *library) compile(source string, options []string, ptx bool) (image []byte, log string, err error) {
	csource := C.CString(source)
	defer C.free(unsafe.Pointer(csource))
	coptions := make([]*C.char, len(options)+1)
	for i, o := range options {
		coptions[i] = C.CString(o)
		defer C.free(unsafe.Pointer(coptions[i]))
	}
	var want C.int
	if ptx {
		want = 1
	}
	var out *C.char
	var size C.size_t
	result := C.nvrtc_compile(&l.calls, csource, C.int(len(options)), &coptions[0], want, &out, &size)
	defer func() { C.free(unsafe.Pointer(out)) }()
	content := C.GoBytes(unsafe.Pointer(out), C.int(size))
	if err := l.check("nvrtcCompileProgram", result); err != nil {
		return nil, strings.TrimRight(string(content), "\x00\n"), err
	}
	return content, "", nil
}

func (l *library) check(call string, result C.int) error {
	if result == 0 {
		return nil
	}
	return fmt.Errorf("%s: %s", call, C.GoString(C.nvrtc_message(&l.calls, result)))
}
