// What the programs of a gradient share.

// softmax_of is the softmax of a score in a row with the largest score most. logarithm is log2 of the row's sum. The
// difference comes first: with masks of -1e9 neither a product nor a sum with the logarithm would be exact enough.
__device__ inline float softmax_of(float score, float most, float logarithm) {
	return power_of_2((score - most) * LOG2_E - logarithm);
}

// none reports whether a warp has no number but 0. Where VANISHES, the gradients in such a square are 0, too.
template <bool VANISHES, int N> __device__ inline bool none(float (*p)[4]) {
	if (!VANISHES) return false;
	int bits = 0;
#pragma unroll
	for (int n = 0; n < N; n++)
		bits |= __float_as_int(p[n][0]) | __float_as_int(p[n][1]) | __float_as_int(p[n][2]) | __float_as_int(p[n][3]);
	return !__any_sync(0xffffffffu, bits != 0);
}

// any_of combines the bits of a warp.
__device__ inline unsigned any_of(unsigned bits) {
	for (int far = 16; far > 0; far /= 2) bits |= __shfl_xor_sync(0xffffffffu, bits, far);
	return bits;
}

// column_sums is where the partial sums of a matrix's columns go: one of each block, step numbers apart from each
// other. first is the first one.
struct column_sums {
	static constexpr bool there = true;
	float *first;
	int step;
	// add writes the sum of a part's rows, which store_tile has left in tile. So many rows of the result are left from
	// the part's first one.
	template <int D, int COLUMN> __device__ inline void add(int part, int left, const tile_row<D> *tile) const {
		constexpr int SHARES = D < ATTENTION_THREADS ? ATTENTION_THREADS / D : 1;
		__shared__ float sums[SHARES][D];
		for (int i = threadIdx.x; i < SHARES * D; i += ATTENTION_THREADS) {
			const int column = i % D, share = i / D;
			float x = 0;
#pragma unroll 8
			for (int row = share; row < 64; row += SHARES) x += row < left ? float_of(tile[row][column]) : 0;
			sums[share][column] = x;
		}
		__syncthreads();
		for (int column = threadIdx.x; column < D; column += ATTENTION_THREADS) {
			float x = sums[0][column];
#pragma unroll
			for (int share = 1; share < SHARES; share++) x += sums[share][column];
			first[column * COLUMN + part * step] = x;
		}
	}
};
struct no_sums {
	static constexpr bool there = false;
	template <int D, int COLUMN> __device__ inline void add(int, int, const tile_row<D> *) const {}
};
