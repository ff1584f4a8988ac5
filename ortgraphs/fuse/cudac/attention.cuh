// What the kernels of attention share: matrices of bf16, multiplied by a warp in tiles of 16x8x16 with sums in f32. A
// tile of memory has 8 more columns than it shows, so that eight rows are in different banks of shared memory.

#ifdef __CUDACC__
__device__ inline float power_of_2(float x) {
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
#endif

constexpr float LOG2_E = 1.4426950408889634f;
constexpr int ATTENTION_THREADS = 128;

template <int D> using tile_row = unsigned short[D + 8];

// element is the distance of an element from the first one of a tile, in bytes.
template <int D> __device__ constexpr int element(int row, int column) { return (row * (D + 8) + column) * 2; }

// streamed is the number of rows of a tile that is loaded while the one before it is used.
template <int D> constexpr int streamed = D > 64 ? 32 : 64;

// load_tile begins to load rows, of which so many are left if not ALL: the others are zeros.
template <int D, int ROWS, bool ALL>
__device__ inline void load_tile(shared_at to, const bf16 *from, int step, int left) {
	constexpr int PARTS = D / 8, ALL_PARTS = ROWS * PARTS, THREADS = ATTENTION_THREADS;
#pragma unroll
	for (int first = 0; first < ALL_PARTS; first += THREADS) {
		// where threads have the same columns each time, the compiler finds the distance of their rows
		const int i = first + threadIdx.x;
		const int row = THREADS % PARTS == 0 ? first / PARTS + threadIdx.x / PARTS : i / PARTS;
		const int column = (THREADS % PARTS == 0 ? threadIdx.x : i) % PARTS * 8;
		if (ALL_PARTS % THREADS == 0 || i < ALL_PARTS) {
			const bool there = ALL || row < left;
			copy_16(to + element<D>(row, column), from + (there ? row : 0) * step + column, there);
		}
	}
}

// left_of loads the left operands of products: 16 rows of a tile.
template <int D> __device__ inline void left_of(unsigned (*a)[4], shared_at tile) {
	tile += element<D>(threadIdx.x % 16, threadIdx.x % 32 / 16 * 8);
#pragma unroll
	for (int k = 0; k < D / 16; k++) load_matrices(a[k], tile + element<D>(0, k * 16));
}

// multiply_rows computes c = a B', where the rows of B are N rows of a tile.
template <int D, int N> __device__ inline void multiply_rows(float (*c)[4], unsigned (*a)[4], shared_at tile) {
	tile += element<D>(threadIdx.x % 32 / 16 * 8 + threadIdx.x % 8, threadIdx.x / 8 % 2 * 8);
#pragma unroll
	for (int n = 0; n < N / 8; n++) {
#pragma unroll
		for (int e = 0; e < 4; e++) c[n][e] = 0;
	}
#pragma unroll
	for (int k = 0; k < D / 16; k++) {
#pragma unroll
		for (int n = 0; n < N / 8; n += 2) {
			unsigned b[4];
			load_matrices(b, tile + element<D>(n * 8, k * 16));
			multiply(c[n], a[k], b);
			multiply(c[n + 1], a[k], b + 2);
		}
	}
}

// add_product computes c += a B, where B are K rows of a tile, and a is rounded to bf16.
template <int D, int K> __device__ inline void add_product(float (*c)[4], float (*a)[4], shared_at tile) {
	tile += element<D>(threadIdx.x % 16, threadIdx.x % 32 / 16 * 8);
#pragma unroll
	for (int k = 0; k < K / 16; k++) {
		const float *low = a[2 * k], *high = a[2 * k + 1];
		const unsigned left[4] = {
			pair_of(low[0], low[1]), pair_of(low[2], low[3]), pair_of(high[0], high[1]), pair_of(high[2], high[3])};
#pragma unroll
		for (int n = 0; n < D / 8; n += 2) {
			unsigned b[4];
			load_transposed(b, tile + element<D>(k * 16, n * 8));
			multiply(c[n], left, b);
			multiply(c[n + 1], left, b + 2);
		}
	}
}

// store_tile writes 64 rows times scale, 16 of each warp, of which so many are left. Rows are step elements apart,
// columns COLUMN. tile is free memory.
template <int D, int COLUMN>
__device__ inline void store_tile(bf16 *to, int step, int left, float scale, float (*c)[4], tile_row<D> *tile) {
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	__syncthreads();
	tile_row<D> *rows = tile + warp * 16 + g;
#pragma unroll
	for (int n = 0; n < D / 8; n++) {
		*(unsigned *)&rows[0][n * 8 + 2 * t] = pair_of(c[n][0] * scale, c[n][1] * scale);
		*(unsigned *)&rows[8][n * 8 + 2 * t] = pair_of(c[n][2] * scale, c[n][3] * scale);
	}
	__syncthreads();
	if (COLUMN == 1) {
		constexpr int PARTS = D / 8;
#pragma unroll
		for (int first = 0; first < 64 * PARTS; first += ATTENTION_THREADS) {
			const int i = first + threadIdx.x, row = i / PARTS, column = i % PARTS * 8;
			if (row < left)
				*(vec<unsigned short, 8> *)(to + row * step + column) =
					*(const vec<unsigned short, 8> *)&tile[row][column];
		}
	} else {
		for (int i = threadIdx.x; i < 64 * D; i += ATTENTION_THREADS) {
			const int row = i % 64, column = i / 64;
			if (row < left) to[row * step + column * COLUMN].bits = tile[row][column];
		}
	}
}

// sum_of_four and most_of_four combine what four neighbouring threads have of a row.
__device__ inline float sum_of_four(float x) {
	x += __shfl_xor_sync(0xffffffffu, x, 1);
	return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
__device__ inline float most_of_four(float x) {
	x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
	return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

// The power of a difference below DISTANT is 0 in f32. A row's powers are those of the differences to a score that the
// largest one exceeds by at most RISE, so that sums and results are seldom scaled. The product of a difference is exact
// enough as a difference of products if that score is at most NEAR.
constexpr float DISTANT = -100, RISE = 8, NEAR = 128;

// within is a place, or the last one if it is beyond.
template <int T> __device__ inline int within(int i) { return T % 64 && i >= T ? T - 1 : i; }

// terms_down asks for the terms of the 16 rows of a warp's tile, of which a thread has two. T are all rows.
template <int T, class Of, class Terms> __device__ inline void terms_down(Terms *to, Of of, int first) {
#pragma unroll
	for (int r = 0; r < 2; r++) to[r] = of(within<T>(first + threadIdx.x % 32 / 4 + r * 8));
}

// terms_across reads the terms of the N * 8 columns of a square, of which a thread has two in eight, from shared
// memory.
template <int N, class Terms> __device__ inline void terms_across(Terms *to, const Terms *from) {
#pragma unroll
	for (int c = 0; c < 2 * N; c++) to[c] = from[threadIdx.x % 4 * 2 + c / 2 * 8 + c % 2];
}

// scores_of computes the scores of a square from products of queries and keys, which may be in the same memory. A warp
// has 16 queries from row, and N * 8 keys from column; or, if TURNED, keys and queries. A PLAIN square needs no
// comparisons of places. Beyond the last query or key, the score is that of the last one.
template <bool PLAIN, bool TURNED, int N, int TQ, int TK, class Score, class Query, class Key>
__device__ inline void scores_of(
	float (*to)[4], float (*products)[4], Score score, int row, int column, const Query *queries, const Key *keys) {
	const int lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
#pragma unroll
	for (int n = 0; n < N; n++) {
#pragma unroll
		for (int e = 0; e < 4; e++) {
			const int down = row + g + e / 2 * 8, across = column + n * 8 + 2 * t + e % 2, r = e / 2, c = 2 * n + e % 2;
			to[n][e] = score(PLAIN, products[n][e], within<TQ>(TURNED ? across : down),
				within<TK>(TURNED ? down : across), queries[TURNED ? c : r], keys[TURNED ? r : c]);
		}
	}
}

// finite is what is subtracted from the scores of a row with the largest score x: nothing if all are minus infinity.
__device__ inline float finite(float x) { return x == -INFINITY ? 0 : x; }

// subtract subtracts the largest score of each row from scores.
template <int N> __device__ inline void subtract(float (*s)[4], float *of_row) {
#pragma unroll
	for (int n = 0; n < N; n++) {
#pragma unroll
		for (int e = 0; e < 4; e++) s[n][e] -= finite(of_row[e / 2]);
	}
}
