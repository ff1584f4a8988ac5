// The kernels of gpu/kernels, compiled for the machine: a launch calls them thread by thread.
#include <math.h>
#include <string.h>

typedef struct {
	float x, y, z, w;
} float4;

typedef struct {
	unsigned short x, y, z, w;
} ushort4;

typedef struct {
	unsigned x, y, z, w;
} uint4;

typedef struct {
	unsigned x;
} dimension;

static __thread dimension blockIdx, threadIdx, gridDim, blockDim;

#define __global__ static
#define __device__
#define __launch_bounds__(threads)
#include "../../kernels/adamw.cu"
#undef KERNEL
#include "../../kernels/squares.cu"
#undef KERNEL
#include "../../kernels/weigh.cu"

#define ARGUMENT(type, i) (*(type *)arguments[i])

// From the number of elements on the arguments of all three are the same.
#define SCALARS_FROM(i) \
	ARGUMENT(long long, i), ARGUMENT(float *, i + 1), ARGUMENT(float *, i + 2), ARGUMENT(unsigned char *, i + 3), ARGUMENT(double, i + 4), \
		ARGUMENT(float, i + 5), ARGUMENT(float, i + 6), ARGUMENT(float, i + 7), ARGUMENT(float, i + 8), ARGUMENT(float, i + 9), \
		ARGUMENT(float, i + 10), ARGUMENT(float, i + 11)

static void run_adamw(void **arguments) {
	adamw(ARGUMENT(float4 *, 0), ARGUMENT(float4 *, 1), ARGUMENT(float4 *, 2), ARGUMENT(float4 *, 3), SCALARS_FROM(4));
}

static void run_adamw_copy(void **arguments) {
	adamw_copy(ARGUMENT(float4 *, 0), ARGUMENT(float4 *, 1), ARGUMENT(float4 *, 2), ARGUMENT(float4 *, 3), ARGUMENT(ushort4 *, 4), SCALARS_FROM(5));
}

static void run_adamw_copy_bf16(void **arguments) {
	adamw_copy_bf16(
		ARGUMENT(float4 *, 0), ARGUMENT(ushort4 *, 1), ARGUMENT(float4 *, 2), ARGUMENT(float4 *, 3), ARGUMENT(ushort4 *, 4), SCALARS_FROM(5));
}

static void run_squares_bf16(void **arguments) { squares_bf16(ARGUMENT(uint4 *, 0), ARGUMENT(float *, 1), ARGUMENT(long long, 2)); }

static void run_fold(void **arguments) { fold(ARGUMENT(float *, 0), ARGUMENT(float *, 1), ARGUMENT(long long, 2)); }

static void run_weigh(void **arguments) { weigh(ARGUMENT(float4 *, 0), ARGUMENT(float *, 1), ARGUMENT(long long, 2)); }

static void run_weigh_bf16(void **arguments) { weigh_bf16(ARGUMENT(uint4 *, 0), ARGUMENT(float *, 1), ARGUMENT(long long, 2)); }

// What package gputest tries a context with.
static void run_nothing(void **arguments) {}

static const struct {
	const char *name;
	void (*run)(void **arguments);
} kernels[] = {
	{"adamw", run_adamw}, {"adamw_copy", run_adamw_copy}, {"adamw_copy_bf16", run_adamw_copy_bf16},
	{"squares_bf16", run_squares_bf16}, {"fold", run_fold}, {"weigh", run_weigh}, {"weigh_bf16", run_weigh_bf16}, {"nothing", run_nothing}};

enum { KERNELS = sizeof kernels / sizeof *kernels };

static void launch(int kernel, unsigned blocks, unsigned threads, void **arguments) {
	gridDim.x = blocks, blockDim.x = threads;
	for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
		for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) kernels[kernel].run(arguments);
}
