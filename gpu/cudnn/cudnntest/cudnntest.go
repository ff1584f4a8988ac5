// Package cudnntest asks package cudnn which of the engines of a cuDNN it takes.
package cudnntest

/*
#include "fake.h"

static void add(fake_engine e) { fake_engines[fake_count++] = e; }

// begin forgets the engines of another test.
static cudnn_handle *begin(int measured, int tf32) {
	fake_count = 0, fake_ran = -1, fake_alive = 0;
	cudnn_handle *h = calloc(1, sizeof *h);
	h->library = &fake_library, h->measured = measured, h->tf32 = tf32;
	return h;
}

static int end(cudnn_handle *h) {
	const int status = cudnn_end(h);
	free(h);
	return status;
}

static int ran(void) { return fake_ran; }
static int alive(void) { return fake_alive; }

// convolve is a convolution of 8 channels.
static int convolve(cudnn_handle *h, int type, size_t workspace) {
	static float memory[64] __attribute__((aligned(16)));
	const cudnn_form f = {0, type, 1, 8, 8, 1, {1, 4}, {1, 4}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}};
	return cudnn_convolve(h, &f, memory, memory, memory, memory, workspace, NULL);
}
*/
import "C"

import _ "github.com/xtts-host/xtts-host/gpu/cudnn" // it has cudnn_convolve

// Types of what is convolved.
const (
	F32  = 0
	BF16 = 9
)

// Engine is what cuDNN proposes, in the order of the list, and at the end if it is a fallback.
type Engine struct {
	Fallback  bool
	Notes     []int // of its numbers: see cudnnBackendNumericalNote_t
	Workspace int   // bytes that it needs
	MS        float32
}

// Choice is what a program asks for.
type Choice struct {
	Type           int
	Measured, TF32 bool
}

// Run convolves once with each size of memory, with the same handle. It returns the engine that has run last for each,
// or -1 if the status is not 0, and the number of descriptors that are not destroyed.
func Run(engines []Engine, c Choice, workspaces ...int) (ran []int, left int) {
	number := map[bool]C.int{true: 1}
	h := C.begin(number[c.Measured], number[c.TF32])
	for _, e := range engines {
		const modeFallback, modeA = 2, 3
		to := C.fake_engine{
			mode: modeA, note_count: C.int(len(e.Notes)), workspace: C.int64_t(e.Workspace), ms: C.float(e.MS),
		}
		if e.Fallback {
			to.mode = modeFallback
		}
		for i, n := range e.Notes {
			to.notes[i] = C.int(n)
		}
		C.add(to)
	}
	for _, size := range workspaces {
		if C.convolve(h, C.int(c.Type), C.size_t(size)) != 0 {
			ran = append(ran, -1)
			continue
		}
		ran = append(ran, int(C.ran()))
	}
	if C.end(h) != 0 {
		return nil, 0
	}
	return ran, int(C.alive())
}
