// The gradients of a batch times its loss weight, in place: one pass over the vector, where the graph ortgraphs.Weigh
// passes once for each operator. A product is rounded once. It begins with 0 as the accumulation of a window does, so
// it is never -0; and that of a batch without weight is 0, whatever the gradient is.
//
//	weigh       f32
//	weigh_bf16  bf16
//
// n is a multiple of 4, in bf16 of 8: a thread reads 16 bytes at once. scripts/kernels.sh compiles it; it is C but for
// CUDA's words, so that gpu/cuda/fakecuda can compile it too.
#ifdef __cplusplus
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#else
#define KERNEL __global__ void __launch_bounds__(256)
#endif

typedef union {
	float number;
	unsigned bits;
} weighed;

static __device__ float product(float gradient, float weight) { return weight == 0 ? 0 : 0 + gradient * weight; }

// The product of bf16 in the upper half of a word: to the nearest, and to the even one of two that are as near. A NaN
// stays one.
static __device__ unsigned narrow_product(unsigned upper, float weight) {
	weighed w;
	w.bits = upper;
	w.number = product(w.number, weight);
	if (w.number != w.number) return w.bits >> 16 | 0x40;
	return (w.bits + 0x7fff + (w.bits >> 16 & 1)) >> 16;
}

static __device__ unsigned products(unsigned pair, float weight) {
	return narrow_product(pair << 16, weight) | narrow_product(pair & 0xffff0000u, weight) << 16;
}

#define EACH(WIDTH, TYPE, PRODUCT) \
	const float by = *weight; \
	const long long stride = (long long)gridDim.x * blockDim.x; \
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; WIDTH * i < n; i += stride) { \
		TYPE x = grads[i]; \
		x.x = PRODUCT(x.x, by); \
		x.y = PRODUCT(x.y, by); \
		x.z = PRODUCT(x.z, by); \
		x.w = PRODUCT(x.w, by); \
		grads[i] = x; \
	}

KERNEL weigh(float4 *__restrict__ grads, const float *__restrict__ weight, long long n) { EACH(4, float4, product) }

KERNEL weigh_bf16(uint4 *__restrict__ grads, const float *__restrict__ weight, long long n) { EACH(8, uint4, products) }
