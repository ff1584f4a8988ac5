package nccltest

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>

enum { THREAD_LOCAL = 1 }; // of CUstreamCaptureMode

static int find(void **f, const char *name) {
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	return driver && (*f = dlsym(driver, name)) ? 0 : 801; // CUDA_ERROR_NOT_SUPPORTED
}

static int begin(uintptr_t stream) {
	int (*f)(void *, int), result = find((void **)&f, "cuStreamBeginCapture_v2");
	return result ? result : f((void *)stream, THREAD_LOCAL);
}

// end makes a graph of what was captured that can be launched.
static int end(uintptr_t stream, uintptr_t *made) {
	int (*finish)(void *, void **), (*instantiate)(void *, void *, unsigned long long), (*destroy)(void *);
	void *graph, *executable;
	int result = find((void **)&finish, "cuStreamEndCapture");
	if (!result) result = find((void **)&instantiate, "cuGraphInstantiateWithFlags");
	if (!result) result = find((void **)&destroy, "cuGraphDestroy");
	if (!result) result = finish((void *)stream, &graph);
	if (result) return result;
	result = instantiate(&executable, graph, 0);
	destroy(graph);
	*made = (uintptr_t)executable;
	return result;
}

static int launch(uintptr_t graph, uintptr_t stream) {
	int (*f)(void *, void *), result = find((void **)&f, "cuGraphLaunch");
	return result ? result : f((void *)graph, (void *)stream);
}

static int destroy(uintptr_t graph) {
	int (*f)(void *), result = find((void **)&f, "cuGraphExecDestroy");
	return result ? result : f((void *)graph);
}
*/
import "C"

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
)

// Graph is a captured CUDA graph.
type Graph struct{ made C.uintptr_t }

// Capture makes a CUDA graph of what f queues on a stream, in the current context of the calling thread.
func Capture(s gpu.Stream, f func() error) (*Graph, error) {
	if err := check("cuStreamBeginCapture", C.begin(C.uintptr_t(s.Pointer()))); err != nil {
		return nil, err
	}
	queued := f()
	var g Graph
	err := check("end of the capture", C.end(C.uintptr_t(s.Pointer()), &g.made))
	return &g, errors.Join(queued, err)
}

// Launch queues the graph.
func (g *Graph) Launch(s gpu.Stream) error {
	return check("cuGraphLaunch", C.launch(g.made, C.uintptr_t(s.Pointer())))
}

// Close destroys the graph.
func (g *Graph) Close() error { return check("cuGraphExecDestroy", C.destroy(g.made)) }

func check(call string, result C.int) error {
	if result == 0 {
		return nil
	}
	return fmt.Errorf("%s: CUDA error %d", call, result)
}
