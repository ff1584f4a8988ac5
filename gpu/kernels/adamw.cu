// The update of AdamW as one kernel: what ortgraphs/optim/adamw.onnx computes with some twenty operators, each of which
// passes over the vectors. Every operation is that graph's, in its order and rounded as IEEE 754 says (-fmad=false), so
// that both give the same bits. scripts/kernels.sh compiles it; the driver compiles the PTX for its GPU.
//
// There is a kernel for each way in which a training graph takes a parameter and gives its gradient:
//
//	adamw           f32, f32
//	adamw_copy      bf16, f32: the kernel writes the copy that the graph reads, too
//	adamw_copy_bf16 bf16, bf16
//
// n is a multiple of 4. Scalars that a run's window decides are read where graphs have written them; the others are the
// graph's scalars of the same names. It is C but for CUDA's words, so that gpu/cuda/fakecuda can compile it too.
#ifdef __cplusplus
#define KERNEL extern "C" __global__ void __launch_bounds__(256)
#else
#define KERNEL __global__ void __launch_bounds__(256)
#endif

typedef union {
	float number;
	unsigned bits;
} word;

// f32 as bf16: to the nearest, and to the even one of two that are as near. Infinities stay. No weight is NaN.
static __device__ unsigned short narrow(float x) {
	word w;
	w.number = x;
	return (unsigned short)((w.bits + 0x7fff + (w.bits >> 16 & 1)) >> 16);
}

static __device__ float wide(unsigned short x) {
	word w;
	w.bits = (unsigned)x << 16;
	return w.number;
}

#define WIDE_F32(x) (x)
#define WIDE_BF16(x) wide(x)

#define UPDATE(of, WIDE) \
	{ \
		const float g = WIDE(grads.of) * scale; \
		m.of = m.of + (g - m.of) * rest1; \
		v.of = v.of * decay2 + g * g * rest2; \
		p.of = p.of * keep - m.of / (sqrtf(v.of) / root2 + eps) * step_size; \
	}

#define SCALARS \
	long long n, const float *__restrict__ grad_norm, const float *__restrict__ grad_scale, \
		const unsigned char *__restrict__ finite, double max_norm, float rest1, float decay2, float rest2, \
		float root2, float eps, float step_size, float keep

// COPY is a statement for each four elements.
#define BODY(GRADS, WIDE, COPY) \
	if (!*finite) return; /* every bit stays as it is */ \
	double clip = 1; \
	if (max_norm > 0) clip = fmin(max_norm / (*grad_norm + 1e-6), 1.0); \
	const float scale = *grad_scale * clip; \
	const long long stride = (long long)gridDim.x * blockDim.x; \
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; 4 * i < n; i += stride) { \
		float4 p = param[i], m = exp_avg[i], v = exp_avg_sq[i]; \
		const GRADS grads = grad[i]; \
		UPDATE(x, WIDE) \
		UPDATE(y, WIDE) \
		UPDATE(z, WIDE) \
		UPDATE(w, WIDE) \
		param[i] = p; \
		exp_avg[i] = m; \
		exp_avg_sq[i] = v; \
		COPY \
	}

#define NARROW \
	{ \
		ushort4 c; \
		c.x = narrow(p.x); \
		c.y = narrow(p.y); \
		c.z = narrow(p.z); \
		c.w = narrow(p.w); \
		copy[i] = c; \
	}

KERNEL adamw(float4 *__restrict__ param, const float4 *__restrict__ grad, float4 *__restrict__ exp_avg,
	float4 *__restrict__ exp_avg_sq, SCALARS){BODY(float4, WIDE_F32, )}

KERNEL adamw_copy(float4 *__restrict__ param, const float4 *__restrict__ grad, float4 *__restrict__ exp_avg,
	float4 *__restrict__ exp_avg_sq, ushort4 *__restrict__ copy, SCALARS){BODY(float4, WIDE_F32, NARROW)}

KERNEL adamw_copy_bf16(float4 *__restrict__ param, const ushort4 *__restrict__ grad, float4 *__restrict__ exp_avg,
	float4 *__restrict__ exp_avg_sq, ushort4 *__restrict__ copy, SCALARS) {
	BODY(ushort4, WIDE_BF16, NARROW)
}
