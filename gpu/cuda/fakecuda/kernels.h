// The kernels of gpu/kernels, compiled for the machine: a launch calls them thread by thread.
#include <math.h>
#include <sched.h>
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
#undef KERNEL
// Threads run one after the other, each to its end, in the process of a rank.
#define __threadfence_system() __sync_synchronize()
#define __syncthreads()
#define peers_pause() sched_yield()
#include "../../kernels/peers.cu"

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

static void run_peers_begin(void **arguments) {
	peers_begin(ARGUMENT(unsigned *, 0), ARGUMENT(unsigned *, 1), ARGUMENT(unsigned *, 2), ARGUMENT(long long, 3));
}

static void run_peers_tell(void **arguments) {
	peers_tell(ARGUMENT(unsigned *, 0), ARGUMENT(volatile unsigned *const *, 1), ARGUMENT(unsigned *, 2), ARGUMENT(long long, 3));
}

static void run_peers_wait(void **arguments) {
	peers_wait(ARGUMENT(unsigned *, 0), ARGUMENT(unsigned *, 1), ARGUMENT(unsigned *, 2), ARGUMENT(long long, 3));
}

#define SUM_ARGUMENTS \
	ARGUMENT(const char *, 1), ARGUMENT(float *, 2), ARGUMENT(const char *, 3), ARGUMENT(long long, 4), ARGUMENT(long long, 5), \
		ARGUMENT(long long, 6), ARGUMENT(long long, 7)

static void run_peers_sum(void **arguments) { peers_sum(ARGUMENT(float4 *, 0), SUM_ARGUMENTS); }

static void run_peers_sum_bf16(void **arguments) { peers_sum_bf16(ARGUMENT(uint4 *, 0), SUM_ARGUMENTS, ARGUMENT(float *, 8)); }

// What package gputest tries a context with.
static void run_nothing(void **arguments) {}

static const struct {
	const char *name;
	void (*run)(void **arguments);
} kernels[] = {
	{"adamw", run_adamw}, {"adamw_copy", run_adamw_copy}, {"adamw_copy_bf16", run_adamw_copy_bf16},
	{"squares_bf16", run_squares_bf16}, {"fold", run_fold}, {"weigh", run_weigh}, {"weigh_bf16", run_weigh_bf16},
	{"peers_begin", run_peers_begin}, {"peers_tell", run_peers_tell}, {"peers_wait", run_peers_wait}, {"peers_sum", run_peers_sum},
	{"peers_sum_bf16", run_peers_sum_bf16}, {"nothing", run_nothing}};

enum { KERNELS = sizeof kernels / sizeof *kernels };

static void launch(int kernel, unsigned blocks, unsigned threads, void **arguments) {
	gridDim.x = blocks, blockDim.x = threads;
	for (blockIdx.x = 0; blockIdx.x < blocks; blockIdx.x++)
		for (threadIdx.x = 0; threadIdx.x < threads; threadIdx.x++) kernels[kernel].run(arguments);
}
