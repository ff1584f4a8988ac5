// What the kernels of regions share. Without CUDA's headers: NVRTC then compiles a kernel in milliseconds.

#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fc00000)
#endif

// bf16 is stored as the upper half of an f32, and held as f32.
#ifdef __CUDACC__
// rounded converts two numbers, one of which is 0: the instruction for one number has an eighth of the rate.
__device__ inline float rounded(float x) {
	unsigned bits;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(x), "f"(0.f));
	return __int_as_float(bits);
}
// pair_of rounds two numbers to bf16, and returns them as they are next to each other in memory.
__device__ inline unsigned pair_of(float low, float high) {
	unsigned bits;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
	return bits;
}
__device__ inline float float_of(unsigned short bits) { return __int_as_float((int)bits << 16); }
// fetch_ahead asks for what is in memory there, so that it is in the cache of the GPU later.
__device__ inline void fetch_ahead(const void *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }
// read_fresh reads what another multiprocessor may have written: not from the cache of this one.
__device__ inline float read_fresh(const float *p) {
	float x;
	asm volatile("ld.global.cg.f32 %0, [%1];" : "=f"(x) : "l"(p) : "memory");
	return x;
}
#endif

// low_of and high_of are two numbers in bf16 that are next to each other in memory.
__device__ inline float low_of(unsigned pair) { return __int_as_float(pair << 16); }
__device__ inline float high_of(unsigned pair) { return __int_as_float(pair & 0xffff0000u); }

struct bf16 {
	unsigned short bits;
	__device__ bf16() {}
	__device__ bf16(float x) : bits(__float_as_int(rounded(x)) >> 16) {}
	__device__ operator float() const { return float_of(bits); }
};
__device__ inline bf16 exact(float x) { // x is rounded
	bf16 y;
	y.bits = __float_as_int(x) >> 16;
	return y;
}

// vec is what one instruction reads or writes.
template <class T, int N> struct alignas(sizeof(T) * N > 16 ? 16 : sizeof(T) * N) vec { T at[N]; };

// Like ONNX, these return NaN if an operand is NaN.
template <class T> __device__ inline T sum_of(T a, T b) { return a + b; }
template <class T> __device__ inline T max_of(T a, T b) { return a != a || a > b ? a : b; }
template <class T> __device__ inline T min_of(T a, T b) { return a != a || a < b ? a : b; }
template <class T> __device__ inline T relu_of(T x) { return x < 0 ? 0 : x; }
template <class T> __device__ inline T sign_of(T x) { return x > 0 ? 1 : x < 0 ? -1 : x == x ? 0 : x; }
template <class T> __device__ inline T magnitude_of(T x) { return x < 0 ? -x : x; }

// remainder_of has the sign of the divisor.
template <class T> __device__ inline T remainder_of(T a, T b) {
	T r = a % b;
	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

// residue_of is the remainder by D if a is not negative. The quotient of an int takes three instructions: it is the
// upper half of a product with 2^(32 + S) / D, rounded up, which is exact below 2^31 (Granlund and Montgomery, Division
// by Invariant Integers using Multiplication, theorem 4.2). For D = 1 that number has no room in 32 bits.
__device__ constexpr int log2_of(int x) { return x > 1 ? 1 + log2_of(x / 2) : 0; }
template <long long D> __device__ inline int residue_of(int a) {
	if (D == 1) return 0;
	constexpr int S = log2_of(D - 1);
	constexpr unsigned FACTOR = ((1ull << (32 + S)) + D - 1) / D;
	return a - (int)(__umulhi(a, FACTOR) >> S) * (int)D;
}
template <long long D> __device__ inline long long residue_of(long long a) {
	return (unsigned long long)a % (unsigned long long)D;
}

// tanh_of has a relative error of at most 2e-6 everywhere: near 0 a difference of almost equal numbers would have none.
__device__ inline float tanh_of(float x) {
	float s = x * x, near = x + x * s * (-0.333333333f + s * (0.133333333f + s * -0.0539682540f));
	float far = 1.f - __fdividef(2.f, 1.f + __expf(2.f * x)); // computed in any case: a branch costs more
	return s < 0.02f ? near : far;
}
__device__ inline float sigmoid_of(float x) { return 1.f / (1.f + __expf(-x)); }
__device__ inline float softplus_of(float x) { return x > 0.f ? x + log1pf(__expf(-x)) : log1pf(__expf(x)); }
// half_of_one_plus_tanh is (1 + tanh(y)) / 2, and one_minus_tanh_squared is 1 - tanh(y)^2, of y = x * scale. They share
// all but two instructions. Far below 0, the first keeps its relative precision, which 1 + tanh(y) loses.
__device__ inline float half_of_one_plus_tanh(float x, float scale) {
	return __fdividef(1.f, 1.f + exp2f(-2.885390082f * scale * x));
}
__device__ inline float one_minus_tanh_squared(float x, float scale) {
	const float half = half_of_one_plus_tanh(x, scale);
	return 4.f * (half - half * half);
}
// bell_of is exp(-x * x / 2), with a relative error of 4e-6 up to |x| = 9, and 8e-6 up to 12.
__device__ inline float bell_of(float x) { return __expf(-0.5f * x * x); }
// normal_tail is erfc(z / sqrt(2)) / 2 of z = |x|, with a relative error of 1.5e-6 up to z = 5 and 4e-6 up to 9: exp(-z
// * z / 2), times t = 1 / (1 + 0.325 z / sqrt(2)), times a polynomial in t. Its coefficients are the least largest
// relative error of half of erfcx(z / sqrt(2)) / t for z up to 12, which is 1.3e-7. erfcf takes four times as many
// instructions.
__device__ inline float normal_tail(float x) {
	const float t = __fdividef(1.f, 1.f + 0.229809704f * fabsf(x));
	float p = -0.0744469331f;
	p = p * t + 0.272075190f;
	p = p * t + -0.240309138f;
	p = p * t + 0.258346134f;
	p = p * t + -0.00323548966f;
	p = p * t + 0.106786907f;
	p = p * t + 0.0889430977f;
	p = p * t + 0.0918402961f;
	return t * p * bell_of(x);
}
// Below 0, 1 + erf(x) and 1 + tanh(x) are differences of almost equal numbers. normal_of is (1 + erf(x / sqrt(2))) / 2,
// by the tail below 0, and (1 + tanh(x)) / 2 = sigmoid(2 x).
__device__ inline float normal_of(float x) {
	const float tail = normal_tail(x);
	return x < 0.f ? tail : 1.f - tail;
}
__device__ inline float gelu_of(float x) { return x * normal_of(x); }
__device__ inline float gelu_tanh_of(float x) { return x * sigmoid_of(1.595769122f * (x + 0.044715f * x * x * x)); }

struct sine_cosine {
	float sine, cosine;
};
__device__ inline sine_cosine sine_cosine_of(float x) {
	sine_cosine both;
	sincosf(x, &both.sine, &both.cosine);
	return both;
}

// In f64 no form is shorter than the precise one.
__device__ inline double sigmoid_of(double x) { return 1.0 / (1.0 + exp(-x)); }
__device__ inline double softplus_of(double x) { return x > 0.0 ? x + log1p(exp(-x)) : log1p(exp(x)); }
__device__ inline double gelu_of(double x) { return 0.5 * x * erfc(-0.70710678118654752 * x); }
__device__ inline double gelu_tanh_of(double x) {
	return x * sigmoid_of(1.5957691216057308 * (x + 0.044715 * x * x * x));
}

// group_OP combines the values of WIDTH neighbouring threads: a power of two up to 32, or 256 in a block of 256. All
// threads of a warp must call it, for 256 all of the block. Every thread has the same result.
#define GROUP(OP) \
	template <int WIDTH, class T> __device__ inline T group_##OP(T x) { \
		for (int far = WIDTH > 32 ? 16 : WIDTH / 2; far > 0; far /= 2) \
			x = OP##_of(x, __shfl_xor_sync(0xffffffffu, x, far)); \
		if (WIDTH <= 32) return x; \
		__shared__ T warps[8]; \
		__syncthreads(); \
		if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = x; \
		__syncthreads(); \
		x = warps[0]; \
		for (int i = 1; i < 8; i++) x = OP##_of(x, warps[i]); \
		return x; \
	}
GROUP(sum)
GROUP(max)
GROUP(min)
