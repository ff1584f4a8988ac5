// The steps of a recurrence in one launch: the blocks wait for each other between steps. Each has columns of the
// weights in shared memory, all the time, and computes these columns of the products, in f32.

#ifdef __CUDACC__
// meet_blocks waits for all threads of so many blocks, which must run at the same time. arrived counts arrivals; target
// is that of the thread's last meeting. What one has written to memory before, another reads after it by read_fresh.
__device__ inline void meet_blocks(unsigned *arrived, unsigned &target, unsigned blocks) {
	__syncthreads();
	target += blocks;
	if (threadIdx.x == 0) {
		unsigned now;
		asm volatile("fence.acq_rel.gpu;\nred.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(arrived) : "memory");
		do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(arrived) : "memory");
		while (now < target);
	}
	__syncthreads();
}
__device__ inline vec<float, 4> read_fresh_4(const float *p) {
	vec<float, 4> v;
	asm volatile("ld.global.cg.v4.f32 {%0, %1, %2, %3}, [%4];"
		: "=f"(v.at[0]), "=f"(v.at[1]), "=f"(v.at[2]), "=f"(v.at[3])
		: "l"(p)
		: "memory");
	return v;
}
// shared_floats is the shared memory that the launch asks for.
__device__ inline float *shared_floats() {
	extern __shared__ vec<float, 4> memory[];
	return memory[0].at;
}
#endif

enum { RECURRENCE_THREADS = 256 };

// leave_sums adds N numbers over the threads of a warp. Each thread returns one of the sums: that of number lane / (32
// / N).
template <int N> __device__ inline float leave_sums(float (&x)[N], int lane) {
	int far = 16;
#pragma unroll
	for (int half = N / 2; half > 0; half /= 2, far /= 2)
#pragma unroll
		for (int i = 0; i < half; i++) {
			const bool upper = lane & far;
			const float kept = upper ? x[i + half] : x[i], sent = upper ? x[i] : x[i + half];
			x[i] = kept + __shfl_xor_sync(0xffffffffu, sent, far);
		}
	for (; far > 0; far /= 2) x[0] += __shfl_xor_sync(0xffffffffu, x[0], far);
	return x[0];
}

// multiply_rows computes the products of rows of a with rows of w, which have INNER numbers each, a multiple of 4. A
// warp computes ROWS x COLUMNS of them, or a part of their terms if the terms are split: the sums of part p begin at
// sums[p * stride].
template <int ROWS, int COLUMNS, int INNER, int SPLIT>
__device__ inline void multiply_rows(const float *a, const float *w, float *sums, int rows, int columns, int stride) {
	constexpr int N = ROWS * COLUMNS;
	const int lane = threadIdx.x % 32, bands = rows / ROWS;
	for (int task = threadIdx.x / 32; task < bands * (columns / COLUMNS) * SPLIT; task += RECURRENCE_THREADS / 32) {
		const int part = task % SPLIT, row = task / SPLIT % bands * ROWS, column = task / SPLIT / bands * COLUMNS;
		const float *own_a = a + row * INNER, *own_w = w + column * INNER;
		float x[N] = {0};
		for (int k = (part * 32 + lane) * 4; k < INNER; k += SPLIT * 128) {
			vec<float, 4> left[ROWS];
#pragma unroll
			for (int r = 0; r < ROWS; r++) left[r] = *(const vec<float, 4> *)(own_a + r * INNER + k);
#pragma unroll
			for (int c = 0; c < COLUMNS; c++) {
				const vec<float, 4> right = *(const vec<float, 4> *)(own_w + c * INNER + k);
#pragma unroll
				for (int r = 0; r < ROWS; r++)
#pragma unroll
					for (int i = 0; i < 4; i++) x[r * COLUMNS + c] += left[r].at[i] * right.at[i];
			}
		}
		const float sum = leave_sums(x, lane);
		const int i = lane / (32 / N);
		if (lane % (32 / N) == 0) sums[part * stride + (row + i / COLUMNS) * columns + column + i % COLUMNS] = sum;
	}
}
