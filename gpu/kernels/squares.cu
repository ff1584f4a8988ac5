// The sum of the squares of a vector in bf16, in f32: one pass over the vector, where the graph
// ortgraphs/optim/squares.onnx passes several times over each of its parts. Every sum has a fixed order, so the bits
// are the same in every run. A NaN or an infinity stays one.
//
//	squares_bf16  each thread adds up every so-manieth square: from[n] to as many sums as there are threads
//	fold          each thread adds up every so-manieth number: from[n] to as many sums as there are threads
//
// n is a multiple of 8 for squares_bf16, which reads 16 bytes at once. scripts/kernels.sh compiles it; it is C but for
// CUDA's words, so that gpu/cuda/fakecuda can compile it too.
#ifdef __cplusplus
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#define UNROLL _Pragma("unroll 4")
#else
#define KERNEL __global__ void __launch_bounds__(256)
#define UNROLL
#endif

// The squares of the lower and the upper of two numbers in bf16.
static __device__ float squares_of(unsigned pair) {
	union {
		unsigned bits;
		float number;
	} low, high;
	low.bits = pair << 16;
	high.bits = pair & 0xffff0000u;
	return low.number * low.number + high.number * high.number;
}

KERNEL squares_bf16(const uint4 *__restrict__ from, float *__restrict__ to, long long n) {
	const long long threads = (long long)gridDim.x * blockDim.x, own = (long long)blockIdx.x * blockDim.x + threadIdx.x;
	float a = 0, b = 0, c = 0, d = 0;
UNROLL
	for (long long i = own; 8 * i < n; i += threads) {
		const uint4 x = from[i];
		a += squares_of(x.x);
		b += squares_of(x.y);
		c += squares_of(x.z);
		d += squares_of(x.w);
	}
	to[own] = (a + b) + (c + d);
}

KERNEL fold(const float *__restrict__ from, float *__restrict__ to, long long n) {
	const long long threads = (long long)gridDim.x * blockDim.x, own = (long long)blockIdx.x * blockDim.x + threadIdx.x;
	float a = 0;
UNROLL
	for (long long i = own; i < n; i += threads) a += from[i];
	to[own] = a;
}
