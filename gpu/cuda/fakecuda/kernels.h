// The kernels of host/train/kernels, compiled for the machine: a launch calls them thread by thread.
#include <math.h>
#include <string.h>

typedef struct {
	float x, y, z, w;
} float4;

typedef struct {
	unsigned x;
} dimension;

static __thread dimension blockIdx, threadIdx, gridDim, blockDim;

#define __global__ static
#define __launch_bounds__(threads)
#include "../../../host/train/kernels/adamw.cu"

#define ARGUMENT(type, i) (*(type *)arguments[i])

static void run_adamw(void **arguments) {
	adamw(ARGUMENT(float4 *, 0), ARGUMENT(float4 *, 1), ARGUMENT(float4 *, 2), ARGUMENT(float4 *, 3), ARGUMENT(long long, 4), ARGUMENT(float *, 5),
		ARGUMENT(float *, 6), ARGUMENT(unsigned char *, 7), ARGUMENT(double, 8), ARGUMENT(float, 9), ARGUMENT(float, 10), ARGUMENT(float, 11),
		ARGUMENT(float, 12), ARGUMENT(float, 13), ARGUMENT(float, 14), ARGUMENT(float, 15));
}

// What package gputest tries a context with.
static void run_nothing(void **arguments) {}

static const struct {
	const char *name;
	void (*run)(void **arguments);
} kernels[] = {{"adamw", run_adamw}, {"nothing", run_nothing}};

enum { KERNELS = sizeof kernels / sizeof *kernels };

static void launch(int kernel, unsigned blocks, unsigned threads, void **arguments) {
	gridDim.x = blocks, blockDim.x = threads;
	for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
		for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) kernels[kernel].run(arguments);
}
