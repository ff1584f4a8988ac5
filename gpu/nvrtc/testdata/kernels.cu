// The kinds of kernels that a training step has: elements, rows and columns, with f32 and bf16 in memory.
typedef unsigned short bf16;

__device__ inline float widen(bf16 v) { return __uint_as_float((unsigned)v << 16); }

__device__ inline bf16 round_bf16(float v) {
	bf16 r;
	asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r) : "f"(v));
	return r;
}

__device__ inline float warp_sum(float v) {
	for (int d = 16; d; d >>= 1) v += __shfl_xor_sync(0xffffffffu, v, d);
	return v;
}

__device__ inline float warp_max(float v) {
	for (int d = 16; d; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
	return v;
}

extern "C" __global__ void __launch_bounds__(256) gelu(const float *x, const float *bias, bf16 *y) {
	long long i = blockIdx.x * 256ll + threadIdx.x;
	float v = x[i] + bias[i % 512];
	y[i] = round_bf16(0.5f * v * (1.0f + erff(v * 0.70710678f)));
}

// A warp computes a row of 512.
extern "C" __global__ void __launch_bounds__(128) softmax(const float4 *x, const ushort4 *mask, float4 *y) {
	long long row = blockIdx.x * 4ll + threadIdx.x / 32;
	int lane = threadIdx.x % 32;
	float v[16], most = -3.4e38f, sum = 0;
#pragma unroll
	for (int i = 0; i < 4; i++) {
		float4 a = x[row * 128 + i * 32 + lane];
		ushort4 b = mask[i * 32 + lane];
		v[4 * i] = a.x + widen(b.x), v[4 * i + 1] = a.y + widen(b.y), v[4 * i + 2] = a.z + widen(b.z),
			  v[4 * i + 3] = a.w + widen(b.w);
	}
#pragma unroll
	for (int i = 0; i < 16; i++) most = fmaxf(most, v[i]);
	most = warp_max(most);
#pragma unroll
	for (int i = 0; i < 16; i++) sum += v[i] = expf(v[i] - most);
	sum = 1.0f / warp_sum(sum);
#pragma unroll
	for (int i = 0; i < 4; i++)
		y[row * 128 + i * 32 + lane] =
			make_float4(v[4 * i] * sum, v[4 * i + 1] * sum, v[4 * i + 2] * sum, v[4 * i + 3] * sum);
}

// A block adds 32 columns of 4096 rows.
extern "C" __global__ void __launch_bounds__(256) columns(const float *x, float *sums) {
	__shared__ float part[8][33];
	int column = threadIdx.x % 32, first = threadIdx.x / 32;
	float sum = 0;
	for (int row = first; row < 4096; row += 8) sum += x[row * 512ll + blockIdx.x * 32 + column];
	part[first][column] = sum;
	__syncthreads();
	if (first) return;
	for (int i = 1; i < 8; i++) sum += part[i][column];
	sums[blockIdx.x * 32 + column] = sum;
}
