// What a proof launches beside the kernels of regions.

// fill sets the bytes of an output: a float is NaN then. The second argument is no address, but their number.
extern "C" __global__ void __launch_bounds__(256) fill(unsigned char *__restrict__ to, const char *__restrict__ size) {
	const long long n = (long long)size, step = gridDim.x * 256;
	for (long long i = blockIdx.x * 256 + threadIdx.x; i < n; i += step) to[i] = 0xff;
}

// toss is a random number that depends on the place of a number and on its value.
__device__ inline unsigned toss(long long place, unsigned bits) {
	unsigned h = ((unsigned)place + bits * 0x9e3779b9u + 1) * 0x85ebca6bu;
	h = (h ^ h >> 15) * 0xc2b2ae35u;
	return h ^ h >> 13;
}

// A number of a type some units in its last place up or down, as a rounding moves it, or the number itself. Zero stays,
// and so does what is not finite, or beyond 2^100: masks, whose sums with any score are the same number.
__device__ inline float moved(float x, long long place, int units, int every) {
	const unsigned bits = __float_as_int(x), size = bits & 0x7fffffff, h = toss(place, bits);
	if (h % every || size <= units || size >= 0x71800000) return x;
	return __int_as_float(h >> 16 & 1 ? bits + units : bits - units);
}
__device__ inline bf16 moved(bf16 x, long long place, int units, int every) {
	const unsigned bits = x.bits, size = bits & 0x7fff, h = toss(place, bits);
	if (h % every == 0 && size > units && size < 0x7180) x.bits = h >> 16 & 1 ? bits + units : bits - units;
	return x;
}
__device__ inline double moved(double x, long long place, int units, int every) {
	const unsigned long long bits = __double_as_longlong(x), size = bits & 0x7fffffffffffffffull;
	const unsigned h = toss(place, (unsigned)bits ^ (unsigned)(bits >> 32));
	if (h % every || size <= units || size >= 0x4630000000000000ull) return x;
	return __longlong_as_double(h >> 16 & 1 ? bits + units : bits - units);
}

// noise moves numbers of a tensor. table is the size of the tensor, the units in the last place, and how many numbers
// have one that moves.
template <class T> __device__ inline void noise(const long long *table, const T *from, T *to) {
	for (long long i = blockIdx.x * 256 + threadIdx.x; i < table[0]; i += gridDim.x * 256)
		to[i] = moved(from[i], i, table[1], table[2]);
}
extern "C" __global__ void __launch_bounds__(256) noise_float(const long long *__restrict__ table,
	const float *__restrict__ from, float *__restrict__ to) {
	noise(table, from, to);
}
extern "C" __global__ void __launch_bounds__(256) noise_short(const long long *__restrict__ table,
	const bf16 *__restrict__ from, bf16 *__restrict__ to) {
	noise(table, from, to);
}
extern "C" __global__ void __launch_bounds__(256) noise_double(const long long *__restrict__ table,
	const double *__restrict__ from, double *__restrict__ to) {
	noise(table, from, to);
}

// What is known of the numbers of a block: see FIELDS in proof.go.
enum {
	SQUARES, NOISE_SQUARES, NORM, ALONG, NOISE_ALONG, NOISE_ALONG_SQUARES, LARGEST, NOISE_LARGEST, NORM_LARGEST, BROKEN,
	FIELDS
};

__device__ inline bool is_finite(double x) { return x - x == 0; }

// measure compares what a kernel has written with the plain results, and these with the results of numbers that were
// moved. Each block has numbers of its own, as many as the second number of the table says.
template <class T>
__device__ inline void measure(const long long *table, const T *kernel, const T *plain, const T *noisy, double *out) {
	__shared__ double all[FIELDS][256];
	double own[FIELDS];
	for (int f = 0; f < FIELDS; f++) own[f] = 0;
	const long long first = blockIdx.x * table[1], last = first + table[1] < table[0] ? first + table[1] : table[0];
	for (long long i = first + threadIdx.x; i < last; i += 256) {
		const double k = kernel[i], p = plain[i], n = noisy[i];
		if (!is_finite(p) || !is_finite(n)) { // an infinite one is a mask; NaN, or one of the two, shows nothing
			if (p == n && k != p) own[BROKEN]++;
			continue;
		}
		if (!is_finite(k)) {
			own[BROKEN]++;
			continue;
		}
		const double d = k - p, e = n - p, x = p;
		own[SQUARES] += d * d;
		own[NOISE_SQUARES] += e * e;
		own[NORM] += x * x;
		own[ALONG] += d * x;
		own[NOISE_ALONG] += e * x;
		own[NOISE_ALONG_SQUARES] += e * x * (e * x);
		own[LARGEST] = own[LARGEST] > (d < 0 ? -d : d) ? own[LARGEST] : d < 0 ? -d : d;
		own[NOISE_LARGEST] = own[NOISE_LARGEST] > (e < 0 ? -e : e) ? own[NOISE_LARGEST] : e < 0 ? -e : e;
		own[NORM_LARGEST] = own[NORM_LARGEST] > (x < 0 ? -x : x) ? own[NORM_LARGEST] : x < 0 ? -x : x;
	}
	for (int f = 0; f < FIELDS; f++) all[f][threadIdx.x] = own[f];
	__syncthreads();
	if (threadIdx.x >= FIELDS) return;
	const int f = threadIdx.x;
	const bool largest = f == LARGEST || f == NOISE_LARGEST || f == NORM_LARGEST;
	double sum = 0;
	for (int i = 0; i < 256; i++) sum = !largest ? sum + all[f][i] : sum > all[f][i] ? sum : all[f][i];
	out[blockIdx.x * FIELDS + f] = sum;
}
extern "C" __global__ void __launch_bounds__(256) measure_float(const long long *__restrict__ table,
	const float *__restrict__ kernel, const float *__restrict__ plain,
	const float *__restrict__ noisy, double *__restrict__ out) {
	measure(table, kernel, plain, noisy, out);
}
extern "C" __global__ void __launch_bounds__(256) measure_short(const long long *__restrict__ table,
	const bf16 *__restrict__ kernel, const bf16 *__restrict__ plain,
	const bf16 *__restrict__ noisy, double *__restrict__ out) {
	measure(table, kernel, plain, noisy, out);
}
extern "C" __global__ void __launch_bounds__(256) measure_double(const long long *__restrict__ table,
	const double *__restrict__ kernel, const double *__restrict__ plain,
	const double *__restrict__ noisy, double *__restrict__ out) {
	measure(table, kernel, plain, noisy, out);
}

// same compares bytes, which must be equal.
extern "C" __global__ void __launch_bounds__(256) same(const long long *__restrict__ table,
	const char *__restrict__ kernel, const char *__restrict__ plain, double *__restrict__ out) {
	__shared__ int differ[256];
	int own = 0;
	const long long first = blockIdx.x * table[1], last = first + table[1] < table[0] ? first + table[1] : table[0];
	for (long long i = first + threadIdx.x; i < last; i += 256) own += kernel[i] != plain[i];
	differ[threadIdx.x] = own;
	__syncthreads();
	if (threadIdx.x >= FIELDS) return;
	double sum = 0;
	for (int i = 0; i < 256; i++) sum += differ[i];
	out[blockIdx.x * FIELDS + threadIdx.x] = threadIdx.x == BROKEN ? sum : 0;
}
