// What is combined of the elements up to each one. The order depends on the sizes alone.

// An affine function, slope * x + rest. A product with 0 is 0, as slopes one after another may be larger than any
// number: an infinity before a slope of 0 is forgotten. What is not a number stays that, and a slope that is not finite
// makes a rest that is no number.
struct affine { double slope, rest; };
__device__ inline double times_of(double a, double b) {
	return (a == 0 && !isnan(b)) || (b == 0 && !isnan(a)) ? 0 : a * b;
}
__device__ inline affine affine_of(double slope, double rest) {
	return {slope, fabs(slope) < (double)INFINITY ? rest : (double)NAN};
}

// The logarithm of a sum of exponentials: the largest number, and the sum of the exponentials of what all are below it.
// Both of two that are equal, which may be infinite, count as they are.
template <class T> struct logarithmic {
	T most;
	double sum;
};
__device__ inline float power_of(float x) { return expf(x); }
__device__ inline double power_of(double x) { return exp(x); }
__device__ inline float logarithm_of(float x) { return logf(x); }
__device__ inline double logarithm_of(double x) { return log(x); }

// joined combines what comes first with what follows it.
template <class T> __device__ inline T joined(T a, T b) { return a + b; }
__device__ inline affine joined(affine a, affine b) {
	return {times_of(b.slope, a.slope), times_of(b.slope, a.rest) + b.rest};
}
template <class T> __device__ inline logarithmic<T> joined(logarithmic<T> a, logarithmic<T> b) {
	if (a.most == b.most) return {a.most, a.sum + b.sum};
	const T most = max_of(a.most, b.most);
	const bool first = a.most == most;
	const T below = power_of((first ? b.most : a.most) - most);
	return {most, first ? a.sum + b.sum * below : a.sum * below + b.sum};
}

// clear makes x what changes nothing that is combined with it, and value_of is the number that it stands for.
template <class T> __device__ inline void clear(T &x) { x = 0; }
__device__ inline void clear(affine &x) { x = {1, 0}; }
template <class T> __device__ inline void clear(logarithmic<T> &x) { x = {-(T)INFINITY, 0}; }
__device__ inline double value_of(affine x) { return x.rest; }
template <class T> __device__ inline T value_of(logarithmic<T> x) { return x.most + logarithm_of((T)x.sum); }

// from_lane is what another thread of the warp has.
template <class T> __device__ inline T from_lane(T x, int lane) { return __shfl_sync(0xffffffffu, x, lane); }
__device__ inline affine from_lane(affine x, int lane) { return {from_lane(x.slope, lane), from_lane(x.rest, lane)}; }
template <class T> __device__ inline logarithmic<T> from_lane(logarithmic<T> x, int lane) {
	return {from_lane(x.most, lane), from_lane(x.sum, lane)};
}

// add_up combines the x of the threads of a group up to this one: a group has WIDTH neighbouring threads, a warp or a
// block. before is what those before it have, all what the whole group has. All threads of a warp must call it, and all
// of a larger group.
template <int WIDTH, class T> __device__ inline T add_up(T x, T &before, T &all) {
	const int lane = threadIdx.x % 32;
#pragma unroll
	for (int far = 1; far < 32; far *= 2) {
		const T other = from_lane(x, lane >= far ? lane - far : lane);
		if (lane >= far) x = joined(other, x);
	}
	before = from_lane(x, lane > 0 ? lane - 1 : 0);
	if (lane == 0) clear(before);
	all = from_lane(x, 31);
	if (WIDTH == 32) return x;
	__shared__ T warps[WIDTH / 32];
	__syncthreads();
	if (lane == 31) warps[threadIdx.x / 32] = x;
	__syncthreads();
	T first;
	clear(first);
	clear(all);
	for (int i = 0; i < WIDTH / 32; i++) {
		if (i == threadIdx.x / 32) first = all;
		all = joined(all, warps[i]);
	}
	before = joined(first, before);
	return joined(first, x);
}
