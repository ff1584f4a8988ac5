// What the kernels of attention share: matrices of bf16, multiplied by a warp in tiles of 16x8x16 with sums in f32. A tile of memory has
// 8 more columns than it shows, so that eight rows are in different banks of shared memory.

#ifdef __CUDACC__
__device__ inline unsigned shared_place(const void *p) {
	unsigned at;
	asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(at) : "l"(p));
	return at;
}
// multiply adds the product of a (16x16) and b (16x8) to c.
__device__ inline void multiply(float *c, const unsigned *a, const unsigned *b) {
	asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
				 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
				 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// load_matrices loads four matrices of 8x8: the threads 8i to 8i+7 give the rows of matrix i.
__device__ inline void load_matrices(unsigned *r, const void *row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
				 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_place(row)) : "memory");
}
__device__ inline void load_transposed(unsigned *r, const void *row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
				 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_place(row)) : "memory");
}
// copy_16 begins to copy 16 bytes to shared memory, or zeros.
__device__ inline void copy_16(void *to, const void *from, bool there) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_place(to)), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// wait_for_copies waits for all copies but the last groups.
template <int GROUPS> __device__ inline void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory"); }
__device__ inline float power_of_2(float x) {
	float y;
	asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
	return y;
}
__device__ inline unsigned pair_of(float low, float high) {
	unsigned bits;
	asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(high), "f"(low));
	return bits;
}
#endif

constexpr float LOG2_E = 1.4426950408889634f;
constexpr int ATTENTION_THREADS = 128;

template <int D> using tile_row = unsigned short[D + 8];

// load_tile begins to load rows, of which so many are left: the others are zeros.
template <int D, int ROWS> __device__ inline void load_tile(tile_row<D> *to, const bf16 *from, int step, int left) {
	for (int i = threadIdx.x; i < ROWS * (D / 8); i += ATTENTION_THREADS) {
		const int row = i / (D / 8), column = i % (D / 8) * 8;
		copy_16(&to[row][column], from + (row < left ? row : 0) * step + column, row < left);
	}
}

// left_of loads the left operand of a product: 16 rows and 16 columns of a tile.
template <int D> __device__ inline void left_of(unsigned *a, const tile_row<D> *tile, int row, int column) {
	const int lane = threadIdx.x % 32;
	load_matrices(a, &tile[row + lane % 16][column + lane / 16 * 8]);
}

// right_of_rows loads two right operands, whose columns are the rows of a tile: 16 of them, 16 columns.
template <int D> __device__ inline void right_of_rows(unsigned *b, const tile_row<D> *tile, int row, int column) {
	const int lane = threadIdx.x % 32;
	load_matrices(b, &tile[row + lane / 16 * 8 + lane % 8][column + lane / 8 % 2 * 8]);
}

// right_of loads two right operands, whose rows are those of a tile: 16 rows, 16 columns.
template <int D> __device__ inline void right_of(unsigned *b, const tile_row<D> *tile, int row, int column) {
	const int lane = threadIdx.x % 32;
	load_transposed(b, &tile[row + lane % 16][column + lane / 16 * 8]);
}

// multiply_rows computes c = a B', where the rows of B are N rows of a tile.
template <int D, int N> __device__ inline void multiply_rows(float (*c)[4], unsigned (*a)[4], const tile_row<D> *tile) {
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
			right_of_rows<D>(b, tile, n * 8, k * 16);
			multiply(c[n], a[k], b);
			multiply(c[n + 1], a[k], b + 2);
		}
	}
}

// add_product computes c += a B, where B are K rows of a tile, and a is rounded to bf16.
template <int D, int K> __device__ inline void add_product(float (*c)[4], float (*a)[4], const tile_row<D> *tile) {
#pragma unroll
	for (int k = 0; k < K / 16; k++) {
		const float *low = a[2 * k], *high = a[2 * k + 1];
		unsigned left[4] = {pair_of(low[0], low[1]), pair_of(low[2], low[3]), pair_of(high[0], high[1]), pair_of(high[2], high[3])};
#pragma unroll
		for (int n = 0; n < D / 8; n += 2) {
			unsigned b[4];
			right_of<D>(b, tile, k * 16, n * 8);
			multiply(c[n], left, b);
			multiply(c[n + 1], left, b + 2);
		}
	}
}

// store_tile writes 64 rows, 16 of each warp, of which so many are left. Rows are step elements apart, columns COLUMN. tile is free memory.
template <int D, int COLUMN> __device__ inline void store_tile(bf16 *to, int step, int left, float (*c)[4], tile_row<D> *tile) {
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	__syncthreads();
#pragma unroll
	for (int n = 0; n < D / 8; n++) {
		*(unsigned *)&tile[warp * 16 + g][n * 8 + 2 * t] = pair_of(c[n][0], c[n][1]);
		*(unsigned *)&tile[warp * 16 + g + 8][n * 8 + 2 * t] = pair_of(c[n][2], c[n][3]);
	}
	__syncthreads();
	if (COLUMN == 1) {
		for (int i = threadIdx.x; i < 64 * (D / 8); i += ATTENTION_THREADS) {
			const int row = i / (D / 8), column = i % (D / 8) * 8;
			if (row < left) *(vec<unsigned short, 8> *)(to + row * step + column) = *(const vec<unsigned short, 8> *)&tile[row][column];
		}
	} else {
		for (int i = threadIdx.x; i < 64 * D; i += ATTENTION_THREADS) {
			const int row = i % 64, column = i / 64;
			if (row < left) to[row * step + column * COLUMN].bits = tile[row][column];
		}
	}
}

// attend computes 64 rows of softmax(score(Q K')) V, and what the backward pass needs of each: the largest score, and the sum of the powers.
template <int D, int TQ, int TK, int COLUMN, class Score, class Weight>
__device__ inline void attend(const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v, int v_step, Score score, Weight weight,
							  bf16 *o, int o_step, float *most, float *total) {
	constexpr int BLOCKS = (TK + 63) / 64, STAGES = D > 64 ? 1 : 2;
	alignas(16) __shared__ unsigned short tiles[2 * STAGES][64][D + 8];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first = blockIdx.x * 64;
	load_tile<D, 64>(tiles[0], q + first * q_step, q_step, TQ - first);
	end_copies();
	wait_for_copies<0>();
	__syncthreads();
	unsigned a[D / 16][4];
#pragma unroll
	for (int i = 0; i < D / 16; i++) left_of<D>(a[i], tiles[0], warp * 16, i * 16);
	__syncthreads();
	auto load = [&](int block) {
		const int stage = block % STAGES * 2, at = block * 64;
		load_tile<D, 64>(tiles[stage], k + at * k_step, k_step, TK - at);
		load_tile<D, 64>(tiles[stage + 1], v + at * v_step, v_step, TK - at);
		end_copies();
	};
	load(0);
	float out[D / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};
	for (int block = 0; block < BLOCKS; block++) {
		if (STAGES == 2 && block + 1 < BLOCKS) {
			load(block + 1);
			wait_for_copies<1>();
		} else {
			wait_for_copies<0>();
		}
		__syncthreads();
		const int stage = block % STAGES * 2;
		float s[8][4], top[2] = {largest[0], largest[1]};
		multiply_rows<D, 64>(s, a, tiles[stage]);
#pragma unroll
		for (int n = 0; n < 8; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int row = first + warp * 16 + g + e / 2 * 8, column = block * 64 + n * 8 + 2 * t + e % 2;
				float x = score(s[n][e], TQ % 64 && row >= TQ ? TQ - 1 : row, TK % 64 && column >= TK ? TK - 1 : column);
				if (TK % 64 && column >= TK) x = -INFINITY;
				s[n][e] = x;
				top[e / 2] = fmaxf(top[e / 2], x);
			}
		}
		float base[2];
#pragma unroll
		for (int h = 0; h < 2; h++) {
			top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 1));
			top[h] = fmaxf(top[h], __shfl_xor_sync(0xffffffffu, top[h], 2));
			base[h] = top[h] == -INFINITY ? 0 : top[h];
			const float scale = power_of_2((largest[h] - base[h]) * LOG2_E);
			largest[h] = top[h];
			sum[h] *= scale;
#pragma unroll
			for (int n = 0; n < D / 8; n++) {
				out[n][2 * h] *= scale;
				out[n][2 * h + 1] *= scale;
			}
		}
#pragma unroll
		for (int n = 0; n < 8; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int row = first + warp * 16 + g + e / 2 * 8, column = block * 64 + n * 8 + 2 * t + e % 2;
				const float p = power_of_2((s[n][e] - base[e / 2]) * LOG2_E);
				sum[e / 2] += p;
				s[n][e] = weight(p, TQ % 64 && row >= TQ ? TQ - 1 : row, TK % 64 && column >= TK ? TK - 1 : column);
			}
		}
		add_product<D, 64>(out, s, tiles[stage + 1]);
		__syncthreads();
		if (STAGES == 1 && block + 1 < BLOCKS) load(block + 1);
	}
#pragma unroll
	for (int h = 0; h < 2; h++) {
		sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 1);
		sum[h] += __shfl_xor_sync(0xffffffffu, sum[h], 2);
		const float share = 1.f / sum[h];
#pragma unroll
		for (int n = 0; n < D / 8; n++) {
			out[n][2 * h] *= share;
			out[n][2 * h + 1] *= share;
		}
		const int row = first + warp * 16 + g + 8 * h;
		if (most && t == 0 && row < TQ) {
			most[row] = largest[h];
			total[row] = sum[h];
		}
	}
	store_tile<D, COLUMN>(o + first * o_step, o_step, TQ - first, out, tiles[0]);
}

// softmax_of is the softmax of a score in a row with the largest score most. logarithm is log2 of the row's sum. The difference comes first: with
// masks of -1e9 neither a product nor a sum with the logarithm would be exact enough.
__device__ inline float softmax_of(float score, float most, float logarithm) { return power_of_2((score - most) * LOG2_E - logarithm); }

// attend_queries computes 64 rows of dQ, and the row sums that the gradient of the softmax subtracts: those of dO * O, if OF_RESULT, or
// of summed(...). gradient(...) is the gradient of a product Q K'.
template <int D, int TQ, int TK, int COLUMN, bool OF_RESULT, class Score, class Summed, class Gradient>
__device__ inline void attend_queries(const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v, int v_step, const bf16 *grad, int grad_step,
									  const bf16 *o, int o_step, const float *most, const float *total, Score score, Summed summed, Gradient gradient,
									  bf16 *dq, int dq_step, float *sums) {
	constexpr int BLOCKS = (TK + 63) / 64, STAGES = D > 64 ? 1 : 2;
	alignas(16) __shared__ unsigned short tiles[2 * STAGES][64][D + 8];
	__shared__ float deltas[64];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first = blockIdx.x * 64;
	load_tile<D, 64>(tiles[0], q + first * q_step, q_step, TQ - first);
	load_tile<D, 64>(tiles[1], grad + first * grad_step, grad_step, TQ - first);
	end_copies();
	wait_for_copies<0>();
	__syncthreads();
	unsigned a[D / 16][4], ag[D / 16][4];
#pragma unroll
	for (int i = 0; i < D / 16; i++) {
		left_of<D>(a[i], tiles[0], warp * 16, i * 16);
		left_of<D>(ag[i], tiles[1], warp * 16, i * 16);
	}
	if (OF_RESULT) {
		const int r = threadIdx.x / 2, half = threadIdx.x % 2 * (D / 2);
		float x = 0;
		if (first + r < TQ) {
#pragma unroll
			for (int i = 0; i < D / 2; i += 8) {
				const vec<bf16, 8> values = *(const vec<bf16, 8> *)(o + (first + r) * o_step + half + i);
#pragma unroll
				for (int j = 0; j < 8; j++) x += float(values.at[j]) * float_of(tiles[1][r][half + i + j]);
			}
		}
		x += __shfl_xor_sync(0xffffffffu, x, 1);
		if (threadIdx.x % 2 == 0) deltas[r] = x;
	}
	__syncthreads();
	float peak[2], logarithm[2], delta[2] = {0, 0};
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const int row = first + warp * 16 + g + 8 * h;
		peak[h] = row < TQ ? most[row] : 0;
		logarithm[h] = row < TQ ? log2f(total[row]) : INFINITY;
		if (OF_RESULT) delta[h] = deltas[warp * 16 + g + 8 * h];
	}
	auto load = [&](int block) {
		const int stage = block % STAGES * 2, at = block * 64;
		load_tile<D, 64>(tiles[stage], k + at * k_step, k_step, TK - at);
		load_tile<D, 64>(tiles[stage + 1], v + at * v_step, v_step, TK - at);
		end_copies();
	};
	float out[D / 8][4] = {};
	for (int pass = OF_RESULT ? 1 : 0; pass < 2; pass++) {
		load(0);
		for (int block = 0; block < BLOCKS; block++) {
			if (STAGES == 2 && block + 1 < BLOCKS) {
				load(block + 1);
				wait_for_copies<1>();
			} else {
				wait_for_copies<0>();
			}
			__syncthreads();
			const int stage = block % STAGES * 2;
			float s[8][4], dp[8][4];
			multiply_rows<D, 64>(s, a, tiles[stage]);
			multiply_rows<D, 64>(dp, ag, tiles[stage + 1]);
#pragma unroll
			for (int n = 0; n < 8; n++) {
#pragma unroll
				for (int e = 0; e < 4; e++) {
					const int row = first + warp * 16 + g + e / 2 * 8, column = block * 64 + n * 8 + 2 * t + e % 2;
					const int i = TQ % 64 && row >= TQ ? TQ - 1 : row, j = TK % 64 && column >= TK ? TK - 1 : column;
					float p = softmax_of(score(s[n][e], i, j), peak[e / 2], logarithm[e / 2]);
					if (TK % 64 && column >= TK) p = 0;
					if (pass == 0) delta[e / 2] += summed(s[n][e], p, dp[n][e], i, j);
					else dp[n][e] = gradient(s[n][e], p, dp[n][e], delta[e / 2], i, j);
				}
			}
			if (pass == 1) add_product<D, 64>(out, dp, tiles[stage]);
			__syncthreads();
			if (STAGES == 1 && block + 1 < BLOCKS) load(block + 1);
		}
		if (pass == 0) {
#pragma unroll
			for (int h = 0; h < 2; h++) {
				delta[h] += __shfl_xor_sync(0xffffffffu, delta[h], 1);
				delta[h] += __shfl_xor_sync(0xffffffffu, delta[h], 2);
			}
		}
	}
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const int row = first + warp * 16 + g + 8 * h;
		if (t == 0 && row < TQ) sums[row] = delta[h];
	}
	store_tile<D, COLUMN>(dq + first * dq_step, dq_step, TQ - first, out, tiles[0]);
}

// attend_keys computes 64 rows of dK and dV. sums are those of attend_queries, weight(...) is what the product with V reads.
template <int D, int TQ, int TK, int K_COLUMN, int V_COLUMN, class Score, class Weight, class Gradient>
__device__ inline void attend_keys(const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v, int v_step, const bf16 *grad, int grad_step,
								   const float *most, const float *total, const float *sums, Score score, Weight weight, Gradient gradient,
								   bf16 *dk, int dk_step, bf16 *dv, int dv_step) {
	constexpr int ROWS = D > 64 ? 32 : 64, BLOCKS = (TQ + ROWS - 1) / ROWS;
	alignas(16) __shared__ unsigned short memory[4 * ROWS > 64 ? 4 * ROWS : 64][D + 8];
	__shared__ float peaks[2][ROWS], logarithms[2][ROWS], deltas[2][ROWS];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first = blockIdx.x * 64;
	load_tile<D, 64>(memory, k + first * k_step, k_step, TK - first);
	load_tile<D, 64>(memory + 64, v + first * v_step, v_step, TK - first);
	end_copies();
	wait_for_copies<0>();
	__syncthreads();
	unsigned ak[D / 16][4], av[D / 16][4];
#pragma unroll
	for (int i = 0; i < D / 16; i++) {
		left_of<D>(ak[i], memory, warp * 16, i * 16);
		left_of<D>(av[i], memory + 64, warp * 16, i * 16);
	}
	__syncthreads();
	auto load = [&](int block) {
		const int stage = block % 2, at = block * ROWS;
		load_tile<D, ROWS>(memory + stage * 2 * ROWS, q + at * q_step, q_step, TQ - at);
		load_tile<D, ROWS>(memory + stage * 2 * ROWS + ROWS, grad + at * grad_step, grad_step, TQ - at);
		end_copies();
		if (threadIdx.x < ROWS) {
			const int row = at + threadIdx.x;
			peaks[stage][threadIdx.x] = row < TQ ? most[row] : 0;
			logarithms[stage][threadIdx.x] = row < TQ ? log2f(total[row]) : INFINITY;
			deltas[stage][threadIdx.x] = row < TQ ? sums[row] : 0;
		}
	};
	load(0);
	float out_k[D / 8][4] = {}, out_v[D / 8][4] = {};
	for (int block = 0; block < BLOCKS; block++) {
		if (block + 1 < BLOCKS) {
			load(block + 1);
			wait_for_copies<1>();
		} else {
			wait_for_copies<0>();
		}
		__syncthreads();
		const int stage = block % 2;
		const tile_row<D> *queries = memory + stage * 2 * ROWS, *grads = queries + ROWS;
		float s[ROWS / 8][4], dp[ROWS / 8][4];
		multiply_rows<D, ROWS>(s, ak, queries);
		multiply_rows<D, ROWS>(dp, av, grads);
#pragma unroll
		for (int n = 0; n < ROWS / 8; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const int column = first + warp * 16 + g + e / 2 * 8, in = n * 8 + 2 * t + e % 2, row = block * ROWS + in;
				const int i = TQ % ROWS && row >= TQ ? TQ - 1 : row, j = TK % 64 && column >= TK ? TK - 1 : column;
				const float x = s[n][e], p = softmax_of(score(x, i, j), peaks[stage][in], logarithms[stage][in]);
				s[n][e] = weight(p, i, j);
				dp[n][e] = gradient(x, p, dp[n][e], deltas[stage][in], i, j);
			}
		}
		add_product<D, ROWS>(out_v, s, grads);
		add_product<D, ROWS>(out_k, dp, queries);
		__syncthreads();
	}
	store_tile<D, K_COLUMN>(dk + first * dk_step, dk_step, TK - first, out_k, memory);
	store_tile<D, V_COLUMN>(dv + first * dv_step, dv_step, TK - first, out_v, memory);
}
