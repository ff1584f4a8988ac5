package orttest

/*
#include <stdint.h>
#include <string.h>

// A kernel computes n elements and returns a CUDA error, 0 for none.
typedef int kernel(size_t n, void **arguments);

#define POINTER(type, i) (*(type **)arguments[i])

static int square(size_t n, void **arguments) {
	const float *x = POINTER(float, 0);
	float *y = POINTER(float, 1);
	for (size_t i = 0; i < n; i++) y[i] = x[i] * x[i];
	return 0;
}

static int add(size_t n, void **arguments) {
	const float *x = POINTER(float, 0), *y = POINTER(float, 1);
	float *sum = POINTER(float, 2);
	for (size_t i = 0; i < n; i++) sum[i] = x[i] + y[i];
	return 0;
}

static int convert(size_t n, void **arguments) {
	const float *x = POINTER(float, 0);
	for (size_t i = 0; i < n; i++) {
		uint32_t bits;
		memcpy(&bits, &x[i], sizeof bits);
		POINTER(int64_t, 1)[i] = (int64_t)x[i];
		POINTER(uint8_t, 2)[i] = x[i] > 0;
		POINTER(uint16_t, 3)[i] = (uint16_t)(bits >> 16); // bf16, rounded to zero
	}
	return 0;
}

// addresses takes all pointers of a call: n of them, and the memory to which it copies them.
static int addresses(size_t n, void **arguments) {
	void **pointers = arguments[0];
	memcpy(pointers[n], pointers, n * sizeof *pointers);
	return 0;
}

static int nothing(size_t n, void **arguments) { return 0; }
static int out_of_memory(size_t n, void **arguments) { return 2; }
static int illegal_address(size_t n, void **arguments) { return 700; }

// launch has cuLaunchKernel's signature and refuses what it refuses.
static int launch(void *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned height, unsigned depth,
                  unsigned shared, void *stream, void **arguments, void **extra) {
	if (!x || !y || !z || !threads || height != 1 || depth != 1 || extra) return 1;
	if (stream) return 400; // the CPU has none
	return ((kernel *)function)((size_t)x * y * z * threads, arguments);
}

static uintptr_t launcher(void) { return (uintptr_t)launch; }
static uintptr_t functions(int i) {
	static kernel *const all[] = {square, add, convert, nothing, out_of_memory, illegal_address, addresses};
	return (uintptr_t)all[i];
}
*/
import "C"

// Launch is the address of a function with cuLaunchKernel's signature that executes kernels of this package on the CPU,
// before it returns. A kernel computes as many elements as it has threads in all blocks.
var Launch = uintptr(C.launcher())

// The kernels take pointers.
var (
	Square         = function(0) // of f32: input, output
	Add            = function(1) // of f32: two inputs, output
	Convert        = function(2) // of f32 to I64, Bool and BF16
	Nothing        = function(3)
	OutOfMemory    = function(4) // fails with CUDA's error 2
	IllegalAddress = function(5) // fails with CUDA's error 700
	Addresses      = function(6) // of a call's pointers, as many as threads: writes them to the memory of the next one
)

func function(i int) uintptr { return uintptr(C.functions(C.int(i))) }
