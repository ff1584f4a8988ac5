// Sums over GPUs that write into each other's memory: each copies its gradients into a place of its own on every other
// GPU, tells them, waits until it was told the same, and adds up what has come. Only copies run beside other work; they
// need no multiprocessor.
//
//	peers_begin    waits until all others have added up the round before, and begins the next one
//	peers_tell     writes the number of the round to a place on each other GPU
//	peers_wait     waits until each other GPU has written it
//	peers_sum      f32, peers_sum_bf16  bf16: the sum over all ranks, in their order
//
// peers_sum_bf16 also writes what each thread's part of the sum has in squares, if it gets a place for them: the norm
// then needs no pass over the gradients.
//
// The first three run in one block with a thread for each other GPU. When the host sets *stop, which is in its memory,
// they wait no longer and tell nothing more. A round's number wraps around: what counts is the difference.
// scripts/kernels.sh compiles this; it is C but for CUDA's words, so that gpu/cuda/fakecuda can compile it too.
#ifdef __cplusplus
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define peers_pause() __nanosleep(100)
#else
#define KERNEL __global__ void __launch_bounds__(256)
#endif

// reached waits until a number, which another GPU writes, is that of the round.
static __device__ void reached(const volatile unsigned *number, unsigned round, const volatile unsigned *stop) {
	while ((int)(*number - round) < 0 && !*stop) peers_pause();
	__threadfence_system();
}

KERNEL peers_begin(unsigned *round, const volatile unsigned *taken, const volatile unsigned *stop, long long others) {
	if (threadIdx.x < others) reached(taken + threadIdx.x, *round, stop);
	__syncthreads();
	if (threadIdx.x == blockDim.x - 1) *round += 1; // the last one: on the CPU threads run one after the other
}

KERNEL peers_tell(
	const unsigned *round, volatile unsigned *const *to, const volatile unsigned *stop, long long others) {
	__threadfence_system();
	if (threadIdx.x < others && !*stop) *to[threadIdx.x] = *round;
}

KERNEL peers_wait(
	const unsigned *round, const volatile unsigned *sent, const volatile unsigned *stop, long long others) {
	if (threadIdx.x < others) reached(sent + threadIdx.x, *round, stop);
}

typedef union {
	float number;
	unsigned bits;
} summed;

// A term is the gradient of a rank times the loss weight of its batch; that of a batch without weight is 0, whatever
// the gradient is.
static __device__ float term(float x, float weight, int weighs) { return !weighs ? x : weight == 0 ? 0 : x * weight; }

static __device__ float widened(unsigned upper) {
	summed s;
	s.bits = upper;
	return s.number;
}

// To the nearest bf16, and to the even one of two that are as near. A NaN stays one.
static __device__ unsigned narrowed(float x) {
	summed s;
	s.number = x;
	if (x != x) return s.bits >> 16 | 0x40;
	return (s.bits + 0x7fff + (s.bits >> 16 & 1)) >> 16;
}

// What rank r has sent is at r times stride behind received, without a place for this rank. Its weight is as far behind
// weights.
#define PLACE(r) ((r) - ((r) > rank)) * stride

#define EACH_SUM(WIDTH, TYPE, ADD, SUMS, RESULT) \
	const long long step = (long long)gridDim.x * blockDim.x; \
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; WIDTH * i < n; i += step) { \
		float sum[WIDTH] = SUMS; \
		for (int r = 0; r < size; r++) { \
			const TYPE x = r == rank ? own[i] : ((const TYPE *)(received + PLACE(r)))[i]; \
			const float w = !weight ? 1 : r == rank ? *weight : *(const float *)(weights + PLACE(r)); \
			ADD \
		} \
		RESULT \
	}

#define AT(k, value) sum[k] = (r ? sum[k] : 0) + term(value, w, weight != 0);
#define LOW(word) widened((word) << 16)
#define HIGH(word) widened((word) & 0xffff0000u)
#define SQUARES(word) (LOW(word) * LOW(word) + HIGH(word) * HIGH(word))
#define ZEROS4 {0, 0, 0, 0}
#define ZEROS8 {0, 0, 0, 0, 0, 0, 0, 0}

KERNEL peers_sum(float4 *own, const char *received, const float *weight, const char *weights, long long stride,
	long long rank, long long size, long long n) {
	EACH_SUM(4, float4, AT(0, x.x) AT(1, x.y) AT(2, x.z) AT(3, x.w), ZEROS4,
		float4 y; y.x = sum[0]; y.y = sum[1]; y.z = sum[2]; y.w = sum[3]; own[i] = y;)
}

KERNEL peers_sum_bf16(uint4 *own, const char *received, const float *weight, const char *weights, long long stride,
	long long rank, long long size, long long n, float *squares) {
	float all = 0;
	EACH_SUM(8, uint4,
		AT(0, LOW(x.x)) AT(1, HIGH(x.x)) AT(2, LOW(x.y)) AT(3, HIGH(x.y)) AT(4, LOW(x.z)) AT(5, HIGH(x.z))
			AT(6, LOW(x.w)) AT(7, HIGH(x.w)),
		ZEROS8, uint4 y;
		y.x = narrowed(sum[0]) | narrowed(sum[1]) << 16; y.y = narrowed(sum[2]) | narrowed(sum[3]) << 16;
		y.z = narrowed(sum[4]) | narrowed(sum[5]) << 16; y.w = narrowed(sum[6]) | narrowed(sum[7]) << 16; own[i] = y;
		if (squares) all += SQUARES(y.x) + SQUARES(y.y) + SQUARES(y.z) + SQUARES(y.w);)
	if (squares) squares[(long long)blockIdx.x * blockDim.x + threadIdx.x] = all;
}
