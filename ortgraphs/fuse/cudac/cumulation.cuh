// Sums of the elements up to each one. The order of the additions depends on the sizes alone.

// add_up returns the sum of x over the threads of a group up to this one: a group has WIDTH neighbouring threads, a warp or a block. before is the
// sum over those before it, all over the whole group. All threads of a warp must call it, and all of a larger group.
template <int WIDTH, class T> __device__ inline T add_up(T x, T &before, T &all) {
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int far = 1; far < 32; far *= 2) {
		const T other = __shfl_sync(0xffffffffu, x, lane >= far ? lane - far : lane);
		if (lane >= far) x = other + x;
	}
	before = __shfl_sync(0xffffffffu, x, lane > 0 ? lane - 1 : 0);
	if (lane == 0) before = 0;
	all = __shfl_sync(0xffffffffu, x, 31);
	if (WIDTH == 32) return x;
	__shared__ T warps[WIDTH / 32];
	__syncthreads();
	if (lane == 31) warps[threadIdx.x / 32] = x;
	__syncthreads();
	T first = 0;
	all = 0;
	for (int i = 0; i < WIDTH / 32; i++) {
		if (i == threadIdx.x / 32) first = all;
		all += warps[i];
	}
	before = first + before;
	return first + x;
}
