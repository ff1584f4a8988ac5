// The update of AdamW as one kernel: what ortgraphs/optim/adamw.onnx computes with some twenty operators, each of which passes over the
// vectors. Every operation is that graph's, in its order and rounded as IEEE 754 says (-fmad=false), so that both give the same bits.
// scripts/kernels.sh compiles it; the driver compiles the PTX for its GPU.
//
// n is a multiple of 4. Scalars that a run's window decides are read where graphs have written them; the others are the graph's
// scalars of the same names. It is C but for CUDA's words, so that gpu/cuda/fakecuda can compile it too.
#ifdef __cplusplus
extern "C"
#endif
__global__ void __launch_bounds__(256) adamw(
	float4 *__restrict__ param, const float4 *__restrict__ grad, float4 *__restrict__ exp_avg, float4 *__restrict__ exp_avg_sq, long long n,
	const float *__restrict__ grad_norm, const float *__restrict__ grad_scale, const unsigned char *__restrict__ finite, double max_norm,
	float rest1, float decay2, float rest2, float root2, float eps, float step_size, float keep) {
	if (!*finite) return; // every bit stays as it is
	double clip = 1;
	if (max_norm > 0) clip = fmin(max_norm / (*grad_norm + 1e-6), 1.0);
	const float scale = *grad_scale * clip;
	const long long stride = (long long)gridDim.x * blockDim.x;
	for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; 4 * i < n; i += stride) {
		float4 p = param[i], m = exp_avg[i], v = exp_avg_sq[i];
		const float4 grads = grad[i];
#define UPDATE(of) \
	{ \
		const float g = grads.of * scale; \
		m.of = m.of + (g - m.of) * rest1; \
		v.of = v.of * decay2 + g * g * rest2; \
		p.of = p.of * keep - m.of / (sqrtf(v.of) / root2 + eps) * step_size; \
	}
		UPDATE(x)
		UPDATE(y)
		UPDATE(z)
		UPDATE(w)
		param[i] = p;
		exp_avg[i] = m;
		exp_avg_sq[i] = v;
	}
}
