// Package cudactest runs generated CUDA programs on the CPU, for tests on machines without a GPU: the system's C++
// compiler compiles them together with an emulation of blocks, threads, barriers, shuffles and shared memory.
package cudactest

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

typedef int (*launch_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **);
typedef int (*cooperative_fn)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **);

static uintptr_t open_library(char *path) { return (uintptr_t)dlopen(path, RTLD_NOW | RTLD_LOCAL); }
static uintptr_t symbol(uintptr_t library, char *name) { return (uintptr_t)dlsym((void *)library, name); }
static void close_library(uintptr_t library) { dlclose((void *)library); }
static char *last_error(void) { return dlerror(); }

static int launch(uintptr_t launch, int cooperative, uintptr_t function, uintptr_t stream, unsigned gx, unsigned gy, unsigned threads, unsigned shared, uintptr_t *pointers, size_t n) {
	void *arguments[n + 1];
	for (size_t i = 0; i < n; i++) arguments[i] = &pointers[i];
	if (cooperative) return ((cooperative_fn)launch)((void *)function, gx, gy, 1, threads, 1, 1, shared, (void *)stream, arguments);
	return ((launch_fn)launch)((void *)function, gx, gy, 1, threads, 1, 1, shared, (void *)stream, arguments, 0);
}
*/
import "C"

import (
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:embed emulate.h
var emulation string

// Program is a library of compiled sources.
type Program struct {
	library C.uintptr_t
	// Launch is the address of a function with the signature of cuLaunchKernel.
	Launch uintptr
	// CooperativeLaunch is that of one with the signature of cuLaunchCooperativeKernel.
	CooperativeLaunch uintptr
}

// Source is a program with functions of the given names and numbers of arguments, which are pointers; 0 for a function
// that takes all pointers as one structure of 256.
type Source struct {
	Text      string
	Functions map[string]int
}

// Functions finds the functions of a program.
func Functions(text string) map[string]int {
	functions := map[string]int{}
	for _, head := range heads.FindAllStringSubmatch(text, -1) {
		functions[head[1]] = strings.Count(head[2], "*")
	}
	return functions
}

var heads = regexp.MustCompile(`__launch_bounds__\([0-9, ]*\) (\w+)\(([^)]*)\)`)

// Contracted are options of Compile that make a product and a sum one operation with one rounding, as compilers for
// GPUs do, where this machine's processor has one.
func Contracted() []string {
	if cpu.X86.HasFMA {
		return []string{"-O1", "-fexpensive-optimizations", "-mfma", "-ffp-contract=fast"}
	}
	return nil
}

// Compile compiles sources, each after the prelude, into one library, which the end of the test closes.
func Compile(t testing.TB, prelude string, sources []Source, options ...string) *Program {
	t.Helper()
	var text strings.Builder
	fmt.Fprintf(&text, "%s\n%s\n", emulation, prelude)
	for i, s := range sources {
		fmt.Fprintf(&text, "namespace program%d {\n", i)
		names := slices.Sorted(maps.Keys(s.Functions))
		for _, name := range names {
			fmt.Fprintf(&text, "#define %s %s_%d\n", name, name, i)
		}
		text.WriteString(s.Text)
		for _, name := range names {
			arguments := s.Functions[name]
			if arguments == 0 {
				fmt.Fprintf(&text, "#undef %s\nextern \"C\" void call_%s_%d(void **a) { %s_%d(*(pointers *)a[0]); }\n",
					name, name, i, name, i)
				continue
			}
			fmt.Fprintf(&text, "#undef %s\nextern \"C\" void call_%s_%d(void **a) { ((void (*)(%s))%s_%d)(%s); }\n",
				name, name, i, repeat("void *", arguments), name, i, values(arguments))
		}
		text.WriteString("}\n")
	}
	dir := t.TempDir()
	source, library := filepath.Join(dir, "kernels.cpp"), filepath.Join(dir, "kernels.so")
	// With unique symbols, shared memory of inline functions would be that of all programs of this process, which may
	// run at the same time.
	options = append([]string{
		"-std=c++17", "-O0", "-w", "-fno-strict-aliasing", "-fsanitize=alignment", "-U_FORTIFY_SOURCE", "-fPIC",
		"-shared", "-fno-gnu-unique",
	}, options...)
	compile(t, library, source, text.String(), options)
	p := &Program{}
	path := C.CString(library)
	defer C.free(unsafe.Pointer(path))
	if p.library = C.open_library(path); p.library == 0 {
		t.Fatal(errors.New(C.GoString(C.last_error())))
	}
	t.Cleanup(func() { C.close_library(p.library) })
	p.Launch, p.CooperativeLaunch = p.address("launch_kernel"), p.address("cooperative_launch")
	return p
}

// compiled has what this process has compiled, by its text and options: many tests compile the same kernels.
var compiled sync.Map

// compile runs the compiler, or writes what it made of the same text before.
func compile(t testing.TB, library, source, text string, options []string) {
	t.Helper()
	key := sha256.Sum256([]byte(strings.Join(options, " ") + "\n" + text))
	if content, ok := compiled.Load(key); ok {
		if err := os.WriteFile(library, content.([]byte), 0o700); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("g++", append(options, "-o", library, source)...).CombinedOutput()
	if err != nil {
		t.Fatalf("g++: %v\n%s", err, out)
	}
	content, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	compiled.Store(key, content)
}

func repeat(s string, n int) string {
	return strings.TrimSuffix(strings.Repeat(s+", ", n), ", ")
}

func values(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("*(void **)a[%d]", i))
	}
	return strings.Join(list, ", ")
}

func (p *Program) address(name string) uintptr {
	s := C.CString(name)
	defer C.free(unsafe.Pointer(s))
	return uintptr(C.symbol(p.library, s))
}

// Function returns the address of a function of a source, as Launch takes it.
func (p *Program) Function(source int, name string) uintptr {
	return p.address(fmt.Sprintf("call_%s_%d", name, source))
}

// Address returns the address of a slice for a kernel. Go moves what is on a stack, so the slice is pinned until the
// test ends.
func Address[T any](t *testing.T, x []T) uintptr {
	var pinned runtime.Pinner
	t.Cleanup(func() { pinned.Unpin() })
	pinned.Pin(unsafe.SliceData(x))
	return uintptr(unsafe.Pointer(unsafe.SliceData(x)))
}

// Launch launches a function on pointers, which are also the structure that it may take. A block asks for so many bytes
// of shared memory. launch is the address of a function like cuLaunchKernel: a program's, or the driver's.
func Launch(launch, function, stream uintptr, blocks [2]int, threads, shared int, pointers []uintptr) error {
	return launched(launch, 0, function, stream, blocks, threads, shared, pointers)
}

// CooperativeLaunch is Launch by a function like cuLaunchCooperativeKernel.
func CooperativeLaunch(launch, function, stream uintptr, blocks [2]int, threads, shared int, pointers []uintptr) error {
	return launched(launch, 1, function, stream, blocks, threads, shared, pointers)
}

func launched(
	launch uintptr, cooperative C.int, function, stream uintptr, blocks [2]int, threads, shared int, pointers []uintptr,
) error {
	pointers = append(pointers, make([]uintptr, 256-len(pointers))...)
	if code := C.launch(
		C.uintptr_t(launch), cooperative, C.uintptr_t(function), C.uintptr_t(stream), C.unsigned(blocks[0]),
		C.unsigned(blocks[1]), C.unsigned(threads), C.unsigned(shared),
		(*C.uintptr_t)(unsafe.Pointer(unsafe.SliceData(pointers))), C.size_t(len(pointers)),
	); code != 0 {
		return fmt.Errorf("launch: CUDA failure %d", code)
	}
	return nil
}
