// Runs CUDA kernels on the CPU, for tests: the threads of a block are fibers on one thread of the CPU, blocks run one after another, or, in a
// cooperative launch, in turns.

#include <math.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__
#define __shared__ static

struct index3 {
	unsigned x, y, z;
};
static index3 threadIdx, blockIdx, blockDim, gridDim;

// FAST_ERROR is the relative error of the fast functions, for tests that tell them from precise ones.
#ifndef FAST_ERROR
#define FAST_ERROR 0.f
#endif
static inline float fast_exp(float x) { return expf(x) * (1.f + FAST_ERROR); }
#define __expf fast_exp
static inline float __fdividef(float a, float b) { return a / b * (1.f + FAST_ERROR); }
static inline float rsqrtf(float x) { return 1 / sqrtf(x); }
static inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned long long)a * b >> 32; }
static inline int __float_as_int(float x) {
	int bits;
	memcpy(&bits, &x, 4);
	return bits;
}
static inline float __int_as_float(int bits) {
	float x;
	memcpy(&x, &bits, 4);
	return x;
}
static inline long long __double_as_longlong(double x) {
	long long bits;
	memcpy(&bits, &x, 8);
	return bits;
}
static inline double __longlong_as_double(long long bits) {
	double x;
	memcpy(&x, &bits, 8);
	return x;
}
static inline float float_of(unsigned short bits) {
	uint32_t wide = (uint32_t)bits << 16;
	float x;
	memcpy(&x, &wide, 4);
	return x;
}
static inline unsigned short short_of(float x) {
	if (x != x) return 0x7fff;
	uint32_t bits;
	memcpy(&bits, &x, 4);
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static inline float rounded(float x) { return float_of(short_of(x)); }
static inline unsigned pair_of(float low, float high) { return short_of(low) | (unsigned)short_of(high) << 16; }
static volatile char fetched;
static inline void fetch_ahead(const void *p) { fetched = *(const char *)p; } // so that an address outside of memory fails

static inline float read_fresh(const float *p) { return *p; }

static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }

enum { MOST_THREADS = 1024, STACK = 128 << 10 };

// launch_result is what launch_kernel returns: a kernel that fails sets it to an error of CUDA.
static int launch_result;
enum { OUT_OF_RESOURCES = 701, TIMEOUT = 702, MISALIGNED = 716 };

// The compiler calls this before an access to memory that is not aligned as its type requires (-fsanitize=alignment).
extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_type_mismatch_v1(void *place, void *pointer) { launch_result = MISALIGNED; }

static struct block_of_threads {
	index3 place;
	ucontext_t begin[MOST_THREADS], scheduler;
	jmp_buf at[MOST_THREADS], back;
	char *stacks;
	unsigned char *shared; // of a cooperative launch
	int started[MOST_THREADS], done[MOST_THREADS], current, threads;
	int arrived, turn;                                    // of the block's barrier
	int warp_arrived[MOST_THREADS / 32], warp_turn[MOST_THREADS / 32];
	uint64_t exchanged[MOST_THREADS];
	void (*function)(void **);
	void **arguments;
} only_block, *now = &only_block; // the block that runs

static void yield() {
	if (!_setjmp(now->at[now->current])) _longjmp(now->back, 1);
}

static void wait_for(int *arrived, int *turn, int threads) {
	int mine = *turn;
	if (++*arrived == threads) {
		*arrived = 0;
		++*turn;
		return;
	}
	while (*turn == mine) yield();
}

static inline void __syncthreads() { wait_for(&now->arrived, &now->turn, now->threads); }

// warp_wait waits for the threads of a warp.
static void warp_wait() {
	int warp = now->current / 32;
	wait_for(&now->warp_arrived[warp], &now->warp_turn[warp], now->threads - warp * 32 < 32 ? now->threads - warp * 32 : 32);
}

// of_lane returns what another thread of the warp has.
template <class T> static T of_lane(T x, int lane) {
	int me = now->current, warp = me / 32;
	uint64_t bits = 0;
	memcpy(&bits, &x, sizeof x);
	now->exchanged[me] = bits;
	warp_wait();
	memcpy(&x, &now->exchanged[warp * 32 + lane], sizeof x);
	warp_wait();
	return x;
}
template <class T> static T __shfl_xor_sync(unsigned, T x, int mask) { return of_lane(x, now->current % 32 ^ mask); }
template <class T> static T __shfl_sync(unsigned, T x, int from) { return of_lane(x, from); }

static bool __any_sync(unsigned mask, int x) {
	for (int far = 16; far > 0; far /= 2) x |= __shfl_xor_sync(mask, x, far);
	return x;
}

static int __syncthreads_or(int x) {
	static int any[2], round; // the one that a round does not use is cleared for the next one
	int now = round % 2;
	any[now] |= x;
	__syncthreads();
	int result = any[now];
	any[1 - now] = 0, round = now + 1;
	__syncthreads();
	return result != 0;
}

static void __syncwarp() { warp_wait(); }

// The functions below are those of matrices.cuh and attention.cuh that are instructions of a GPU. They place elements in the threads of a warp as the PTX
// ISA says (sections "mma.m16n8k16" and "ldmatrix").
static unsigned operands[MOST_THREADS][6];

static void multiply(float *c, const unsigned *a, const unsigned *b) {
	int me = now->current, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
	memcpy(operands[me], a, 16);
	memcpy(operands[me] + 4, b, 8);
	warp_wait();
	for (int e = 0; e < 4; e++) {
		int row = g + e / 2 * 8, column = 2 * t + e % 2;
		for (int k = 0; k < 16; k++) {
			unsigned left = operands[warp + row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2], right = operands[warp + column * 4 + k % 8 / 2][4 + k / 8];
			c[e] += float_of(left >> k % 2 * 16) * float_of(right >> k % 2 * 16);
		}
	}
	warp_wait();
}

typedef uintptr_t shared_at;
static shared_at place_of(const void *p) { return (shared_at)p; }
static void load_any(unsigned *r, shared_at row, int transposed) {
	int me = now->current, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
	now->exchanged[me] = row;
	warp_wait();
	for (int i = 0; i < 4; i++) {
		unsigned short pair[2];
		for (int j = 0; j < 2; j++) {
			int from = transposed ? 2 * t + j : g, column = transposed ? g : 2 * t + j;
			pair[j] = ((const unsigned short *)(uintptr_t)now->exchanged[warp + i * 8 + from])[column];
		}
		r[i] = pair[0] | (unsigned)pair[1] << 16;
	}
	warp_wait();
}
static void load_matrices(unsigned *r, shared_at row) { load_any(r, row, 0); }
static void load_transposed(unsigned *r, shared_at row) { load_any(r, row, 1); }

// Copies are made as late as the program allows, when their thread waits for them: a program that reads earlier sees what was there before.
enum { MOST_COPIES = 256 };
static struct {
	struct {
		void *to;
		const void *from;
		bool there;
		int group;
	} list[MOST_COPIES];
	int count, groups;
} copies[MOST_THREADS];

static void copy_16(shared_at to, const void *from, bool there) {
	auto &own = copies[now->current];
	if (to % 16 || (uintptr_t)from % 16) launch_result = MISALIGNED;
	else if (own.count == MOST_COPIES) launch_result = OUT_OF_RESOURCES;
	else own.list[own.count++] = {(void *)to, from, there, own.groups};
}
static void end_copies() { copies[now->current].groups++; }
template <int GROUPS> static void wait_for_copies() {
	auto &own = copies[now->current];
	int left = 0;
	for (int i = 0; i < own.count; i++) {
		auto c = own.list[i];
		if (c.group >= own.groups - GROUPS) own.list[left++] = c;
		else if (c.there) memcpy(c.to, c.from, 16);
		else memset(c.to, 0, 16);
	}
	own.count = left;
}
static float power_of_2(float x) { return exp2f(x); }

// The functions below are those of warpgroups.cuh that are instructions of a GPU, and those of matrices.cuh for large memory. Products are computed when they begin: what a program does not
// wait for is there, too.
struct barrier {
	unsigned short arrivals, left;
	unsigned phase;
};
static void make_barrier(shared_at at, int arrivals) { *(barrier *)at = {(unsigned short)arrivals, (unsigned short)arrivals, 0}; }
static void show_barriers() {}
static void arrive_at(shared_at at) {
	barrier *b = (barrier *)at;
	if (--b->left == 0) *b = {b->arrivals, b->arrivals, b->phase + 1};
}
static void wait_at(shared_at at, int phase) {
	while ((((barrier *)at)->phase & 1) == phase) yield();
}

static struct {
	int arrived, turn;
} meetings[16];
template <int THREADS> static void meet(int number) { wait_for(&meetings[number].arrived, &meetings[number].turn, THREADS); }

template <int N> static void take_registers() {}
template <int N> static void leave_registers() {}
static int multiprocessor_ids() { return 1; }

// Shared memory that a launch asks for begins after a multiple of 1,024, so that rounding up takes as much as it can.
enum { MOST_SHARED = 227 << 10, LARGE_ALIGNMENT = 1024, LARGE_OFFSET = 16 };
alignas(LARGE_ALIGNMENT) static unsigned char large[LARGE_OFFSET + MOST_SHARED];
static shared_at large_memory() { return ((shared_at)large + LARGE_OFFSET + LARGE_ALIGNMENT - 1) / LARGE_ALIGNMENT * LARGE_ALIGNMENT; }
static void *memory_at(shared_at at) { return (void *)at; }

#define read_16(from) (*(const vec<unsigned, 4> *)(from))
#define write_16(to, v) (void)(*(vec<unsigned, 4> *)(to) = (v))
static void store_matrices(shared_at row, const unsigned *r) {
	int me = now->current, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
	now->exchanged[me] = row;
	warp_wait();
	for (int i = 0; i < 4; i++) memcpy((char *)(uintptr_t)now->exchanged[warp + i * 8 + g] + t * 4, r + i, 4);
	warp_wait();
}

static void show() {}
static void begin_products() {}
static void end_products() {}
template <int GROUPS> static void wait_for_products() {}
template <class T> static void keep(T &) {}
static shared_at described(shared_at at) { return at; }

// in_tile reads an element of rows of 128 bytes, whose parts of 16 bytes are exchanged. at is in the first row.
static float in_tile(shared_at at, int row, int column) {
	shared_at place = at + row * 128 + column * 2;
	return float_of(*(unsigned short *)(place ^ (place / 128 % 8) * 16));
}

// first_row returns the first row of a step's left factor that the thread multiplies; the other one is 8 rows below.
static int first_row() { return now->current % 128 / 32 * 16 + now->current % 32 / 4; }

// add_step multiplies the thread's two rows of the left factor.
static void add_step(float *c, const float (*rows)[16], shared_at b, int b_turned, bool add) {
	int t = now->current % 4;
	for (int i = 0; i < 32; i++) {
		int column = i / 4 * 8 + 2 * t + i % 2;
		float sum = add ? c[i] : 0;
		for (int k = 0; k < 16; k++) sum += rows[i / 2 % 2][k] * (b_turned ? in_tile(b, k, column) : in_tile(b, column, k));
		c[i] = sum;
	}
}
template <int A_TURNED, int B_TURNED> static void start_step(float (&c)[32], shared_at a, shared_at b, bool add) {
	float left[2][16];
	for (int half = 0; half < 2; half++)
		for (int k = 0; k < 16; k++) {
			int row = first_row() + half * 8;
			left[half][k] = A_TURNED ? in_tile(a, k, row) : in_tile(a, row, k);
		}
	add_step(c, left, b, B_TURNED, add);
}
template <int B_TURNED> static void start_step(float (&c)[32], const unsigned *a, shared_at b, bool add) {
	int group = now->current / 128;
	static unsigned lefts[MOST_THREADS][4];
	memcpy(lefts[now->current], a, 16);
	meet<128>(8 + group);
	float left[2][16];
	for (int half = 0; half < 2; half++)
		for (int k = 0; k < 16; k++) {
			int row = first_row() + half * 8;
			unsigned pair = lefts[group * 128 + row / 16 * 32 + row % 8 * 4 + k % 8 / 2][row % 16 / 8 + k / 8 * 2];
			left[half][k] = float_of(pair >> k % 2 * 16);
		}
	meet<128>(8 + group);
	add_step(c, left, b, B_TURNED, add);
}

static void enter() {
	now->function(now->arguments);
	now->done[now->current] = 1;
	_longjmp(now->back, 1);
}

static void begin_block() {
	memset(now->started, 0, sizeof now->started);
	memset(now->done, 0, sizeof now->done);
	memset(now->warp_arrived, 0, sizeof now->warp_arrived);
	for (int i = 0; i < now->threads; i++) copies[i].count = copies[i].groups = 0;
	now->arrived = 0;
	memset(meetings, 0, sizeof meetings);
}

// run_threads runs each thread of a block until it waits or ends. It returns how many have not ended.
static int run_threads() {
	int left = 0;
	for (now->current = 0; now->current < now->threads; now->current++) {
		int i = now->current;
		if (now->done[i]) continue;
		threadIdx.x = i;
		if (!_setjmp(now->back)) {
			if (now->started[i]) _longjmp(now->at[i], 1);
			now->started[i] = 1;
			getcontext(&now->begin[i]);
			now->begin[i].uc_stack.ss_sp = now->stacks + (size_t)i * STACK;
			now->begin[i].uc_stack.ss_size = STACK;
			now->begin[i].uc_link = 0;
			makecontext(&now->begin[i], enter, 0);
			setcontext(&now->begin[i]);
		}
		left += !now->done[i];
	}
	return left;
}

static void run_block() {
	begin_block();
	while (run_threads()) {}
}

// The functions below are those of recurrence.cuh that are instructions of a GPU.
static void meet_blocks(unsigned *arrived, unsigned &target, unsigned blocks) {
	__syncthreads();
	target += blocks;
	if (now->current == 0) {
		++*arrived;
		while (*(volatile unsigned *)arrived < target) yield();
	}
	__syncthreads();
}
#define read_fresh_4(p) (*(const vec<float, 4> *)(p))
static float *shared_floats() { return (float *)(now->shared + LARGE_OFFSET); }

// That of complete.cuh.
static unsigned count_arrival(unsigned *arrived, unsigned limit) {
	const unsigned before = *arrived;
	*arrived = before >= limit ? 0 : before + 1;
	return before;
}

// cooperative_launch has the signature of cuLaunchCooperativeKernel. Its blocks have only the shared memory that they ask for.
extern "C" int cooperative_launch(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                  void *stream, void **arguments) {
	if (bx > MOST_THREADS || by != 1 || bz != 1 || shared > MOST_SHARED) return 1;
	const unsigned count = gx * gy * gz;
	block_of_threads *blocks = (block_of_threads *)calloc(count, sizeof *blocks);
	blockDim = {bx, 1, 1};
	gridDim = {gx, gy, gz};
	launch_result = 0;
	for (unsigned i = 0; i < count; i++) {
		now = blocks + i;
		now->place = {i % gx, i / gx % gy, i / gx / gy};
		now->stacks = (char *)malloc((size_t)bx * STACK);
		now->shared = (unsigned char *)aligned_alloc(LARGE_ALIGNMENT, sizeof large);
		memset(now->shared, 0xff, sizeof large);
		now->function = (void (*)(void **))function, now->arguments = arguments, now->threads = bx;
		begin_block();
	}
	const time_t began = time(NULL);
	for (int left = 1; left;) {
		left = 0;
		if (time(NULL) - began > 60) { // its blocks wait for what never comes
			launch_result = TIMEOUT;
			break;
		}
		for (unsigned i = 0; i < count; i++) {
			now = blocks + i;
			blockIdx = now->place;
			left += run_threads();
		}
	}
	for (unsigned i = 0; i < count; i++) {
		for (unsigned j = LARGE_OFFSET + shared; j < sizeof large; j++)
			if (blocks[i].shared[j] != 0xff && launch_result != TIMEOUT) launch_result = OUT_OF_RESOURCES; // it has used more than it has asked for
		free(blocks[i].stacks);
		free(blocks[i].shared);
	}
	free(blocks);
	now = &only_block;
	return launch_result;
}

static unsigned long long common(unsigned long long a, unsigned long long b) { return b ? common(b, a % b) : a; } // divisor

// launch_kernel has the signature of cuLaunchKernel. A function is a C function that takes the array of arguments. The blocks of each launch have
// another order.
extern "C" int launch_kernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
                             void **arguments, void **extra) {
	if (!now->stacks) now->stacks = (char *)malloc((size_t)MOST_THREADS * STACK);
	if (bx > MOST_THREADS || by != 1 || bz != 1 || shared > MOST_SHARED || extra) return 1;
	now->function = (void (*)(void **))function;
	now->arguments = arguments;
	now->threads = bx;
	blockDim = {bx, 1, 1};
	gridDim = {gx, gy, gz};
	launch_result = 0;
	static unsigned long long launches;
	const unsigned long long count = (unsigned long long)gx * gy * gz;
	unsigned long long step = 1 + launches++ * 7919 % count;
	while (common(step, count) > 1) step++;
	for (unsigned long long i = 0, at = launches % count; i < count; i++, at = (at + step) % count) {
		blockIdx = {unsigned(at % gx), unsigned(at / gx % gy), unsigned(at / gx / gy)};
		if (shared) memset(large, 0xff, sizeof large);
		run_block();
		for (unsigned j = LARGE_OFFSET + shared; shared && j < sizeof large; j++)
			if (large[j] != 0xff) return OUT_OF_RESOURCES; // it has used more than it has asked for
	}
	return launch_result;
}
