// row_values are what the backward pass knows of a row: the largest score, log2 of the sum of powers, the sum that the
// gradient of the softmax subtracts, and the bits of the keys in reach.
using row_values = vec<float, 4>;

// attend_queries computes a part of dQ, 64 rows, from squares of WIDTH keys, for which a thread has registers, and the
// row sums that the gradient of the softmax subtracts: those of dO * O, if OF_RESULT, or of summed(...). gradient(...)
// is the gradient of a product Q K'. of_query and of_key are the terms that the functions read.
template <int D, int TQ, int TK, int COLUMN, int REACH, bool OF_RESULT, bool VANISHES, class OfQuery, class OfKey,
	class Score, class Plain, class Summed, class Gradient, class Sums>
__device__ inline void attend_queries(int part, const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v,
	int v_step, const bf16 *grad, int grad_step, const bf16 *o, int o_step, const float *most, const float *total,
	const int *reach, OfQuery of_query, OfKey of_key, Score score, Plain is_plain, Summed summed, Gradient gradient,
	float scale, bf16 *dq, int dq_step, Sums sums_q, row_values *values) {
	constexpr int N = streamed<D>, WIDTH = 32, BLOCKS = (TK + N - 1) / N, ROWS = 64;
	alignas(16) __shared__ unsigned short tiles[4 * N][D + 8];
	const shared_at memory = place_of(tiles);
	constexpr int ROW = element<D>(1, 0), STAGE = 2 * N * ROW;
	__shared__ float deltas[ROWS];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int first = part * ROWS, own = first + warp * 16;
	auto load = [&](int block, int stage) {
		const int at = block * N;
		const shared_at to = memory + stage * STAGE;
		load_tile<D, N, TK % N == 0>(to, k + at * k_step, k_step, TK - at);
		load_tile<D, N, TK % N == 0>(to + N * ROW, v + at * v_step, v_step, TK - at);
		end_copies();
	};
	// where queries are at first, and the gradient: after the first keys if there is room
	constexpr int AT = ROWS <= N ? 2 * N : 0;
	load_tile<D, ROWS, TQ % ROWS == 0>(memory + AT * ROW, q + first * q_step, q_step, TQ - first);
	load_tile<D, ROWS, TQ % ROWS == 0>(memory + (AT + ROWS) * ROW, grad + first * grad_step, grad_step, TQ - first);
	end_copies();
	// the keys in reach of the warp's rows, and of all rows of the block of threads
	unsigned reached = ~0u, of_block = ~0u;
	if (VANISHES) {
		reached = of_block = 0;
#pragma unroll
		for (int i = lane; i < ROWS; i += 32) {
			const unsigned bits = first + i < TQ ? reach[first + i] : 0;
			of_block |= bits;
			if (i / 16 == warp) reached |= bits;
		}
		reached = any_of(reached);
		of_block = any_of(of_block);
	}
	auto after = [&](int block) {
		do block++;
		while (block < BLOCKS && !(of_block >> block * N / REACH & 1));
		return block;
	};
	if (AT > 0) load(0, 0);
	float peak[2], logarithm[2], delta[2] = {};
	bool far = false;
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const int row = own + g + 8 * h;
		peak[h] = row < TQ ? most[row] : 0;
		logarithm[h] = row < TQ ? total[row] : INFINITY;
	}
	vec<bf16, 8> result[D / 16];
	if (OF_RESULT) {
		const int row = first + threadIdx.x / 2;
#pragma unroll
		for (int i = 0; i < D / 16; i++)
			result[i] =
				*(const vec<bf16, 8> *)(o + (row < TQ ? row : 0) * o_step + threadIdx.x % 2 * (D / 2) + i * 8);
	}
	wait_for_copies<AT == 0 ? 0 : 1>();
	__syncthreads();
	unsigned a[D / 16][4], ag[D / 16][4];
	left_of<D>(a, memory + (AT + warp * 16) * ROW);
	left_of<D>(ag, memory + (AT + ROWS + warp * 16) * ROW);
	if (OF_RESULT) {
		const int r = threadIdx.x / 2;
		float x = 0;
#pragma unroll
		for (int i = 0; i < D / 16; i++) {
			const vec<bf16, 8> change = *(const vec<bf16, 8> *)&tiles[AT + ROWS + r][threadIdx.x % 2 * (D / 2) + i * 8];
#pragma unroll
			for (int j = 0; j < 8; j++) x += float(result[i].at[j]) * float(change.at[j]);
		}
		x += __shfl_xor_sync(0xffffffffu, x, 1);
		if (threadIdx.x % 2 == 0) deltas[r] = x;
	}
	__syncthreads();
	if (AT == 0) load(0, 0);
#pragma unroll
	for (int h = 0; h < 2; h++) {
		logarithm[h] = log2f(logarithm[h]);
		far |= !(fabsf(peak[h]) <= NEAR);
		if (OF_RESULT) delta[h] = deltas[warp * 16 + g + 8 * h];
	}
	far = __any_sync(0xffffffffu, far);
	decltype(of_query(0)) query[2];
	terms_down<TQ>(query, of_query, own);
	float lift[2], out[D / 8][4] = {};
#pragma unroll
	for (int h = 0; h < 2; h++) lift[h] = far ? logarithm[h] : peak[h] * LOG2_E + logarithm[h];
	using Key = decltype(of_key(0));
	alignas(16) __shared__ Key terms[2][N];
	for (int pass = OF_RESULT ? 1 : 0; pass < 2; pass++) {
		// of the next block, asked for while the one before is computed
		Key upcoming = of_key(within<TK>(threadIdx.x % N));
		for (int block = 0, next, stage = 0; block < BLOCKS; block = next, stage = 1 - stage) {
			next = after(block);
			if (threadIdx.x < N) terms[stage][threadIdx.x] = upcoming;
			wait_for_copies<0>();
			__syncthreads();
			if (next < BLOCKS) {
				load(next, 1 - stage);
				upcoming = of_key(within<TK>(next * N + threadIdx.x % N));
			}
			if (own >= TQ || !(reached >> block * N / REACH & 1)) continue;
			const shared_at keys = memory + stage * STAGE;
#pragma unroll 1
			for (int at = 0; at < N; at += WIDTH) {
				float s[WIDTH / 8][4], p[WIDTH / 8][4], dp[WIDTH / 8][4];
				Key key[WIDTH / 4];
				const int column = block * N + at;
				terms_across<WIDTH / 8>(key, terms[stage] + at);
				multiply_rows<D, WIDTH>(s, a, keys + at * ROW);
				if (is_plain(own, own + 15, column, column + WIDTH - 1))
					scores_of<true, false, WIDTH / 8, TQ, TK>(p, s, score, own, column, query, key);
				else scores_of<false, false, WIDTH / 8, TQ, TK>(p, s, score, own, column, query, key);
				if (far) subtract<WIDTH / 8>(p, peak);
#pragma unroll
				for (int n = 0; n < WIDTH / 8; n++) {
#pragma unroll
					for (int e = 0; e < 4; e++) {
						p[n][e] = power_of_2(fmaf(p[n][e], LOG2_E, -lift[e / 2]));
						if (TK % N && column + n * 8 + 2 * t + e % 2 >= TK) p[n][e] = 0;
					}
				}
				if (none<VANISHES, WIDTH / 8>(p)) continue;
				multiply_rows<D, WIDTH>(dp, ag, keys + (N + at) * ROW);
#pragma unroll
				for (int n = 0; n < WIDTH / 8; n++) {
#pragma unroll
					for (int e = 0; e < 4; e++) {
						const int i = within<TQ>(own + g + e / 2 * 8), j = within<TK>(column + n * 8 + 2 * t + e % 2),
								  r = e / 2, c = 2 * n + e % 2;
						if (pass == 0) delta[r] += summed(s[n][e], p[n][e], dp[n][e], i, j, query[r], key[c]);
						else dp[n][e] = gradient(s[n][e], p[n][e], dp[n][e], delta[r], i, j, query[r], key[c]);
					}
				}
				if (pass == 1) add_product<D, WIDTH>(out, dp, keys + at * ROW);
			}
		}
		if (pass == 0) {
#pragma unroll
			for (int h = 0; h < 2; h++) delta[h] = sum_of_four(delta[h]);
			__syncthreads();
			load(0, 0);
		}
	}
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const int row = own + g + 8 * h;
		if (t == 0 && row < TQ) values[row] = {{peak[h], logarithm[h], delta[h], __int_as_float(reached)}};
	}
	store_tile<D, COLUMN>(dq + first * dq_step, dq_step, TQ - first, scale, out, tiles);
	sums_q.template add<D, COLUMN>(part, TQ - first, tiles);
}

// bits_of are those of so many keys in reach.
template <int REACH, int KEYS> __device__ inline unsigned bits_of(int first) {
	unsigned bits = 0;
	for (int i = first; i < first + KEYS; i += 16) bits |= 1u << i / REACH;
	return bits;
}

// attend_keys computes a part of dK and dV, 64 rows, from squares of WIDTH queries. values are those of attend_queries,
// weight(...) is what the product with V reads.
template <int D, int TQ, int TK, int K_COLUMN, int V_COLUMN, int REACH, bool VANISHES, class OfQuery, class OfKey,
	class Score, class Plain, class Weight, class Gradient, class SumsK, class SumsV>
__device__ inline void attend_keys(int part, const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v,
	int v_step, const bf16 *grad, int grad_step, const row_values *values, OfQuery of_query, OfKey of_key,
	Score score, Plain is_plain, Weight weight, Gradient gradient, float scale, bf16 *dk, int dk_step, SumsK sums_k,
	bf16 *dv, int dv_step, SumsV sums_v) {
	constexpr int N = streamed<D>, WIDTH = 16, BLOCKS = (TQ + N - 1) / N, ROWS = 64;
	alignas(16) __shared__ unsigned short tiles[4 * N][D + 8];
	const shared_at memory = place_of(tiles);
	constexpr int ROW = element<D>(1, 0), STAGE = 2 * N * ROW;
	__shared__ row_values of_rows[2][N];
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4, first = part * ROWS,
			  own = first + warp * 16;
	auto load = [&](int block, int stage) {
		const int at = block * N;
		const shared_at to = memory + stage * STAGE;
		load_tile<D, N, TQ % N == 0>(to, q + at * q_step, q_step, TQ - at);
		load_tile<D, N, TQ % N == 0>(to + N * ROW, grad + at * grad_step, grad_step, TQ - at);
		if (threadIdx.x < N) {
			row_values *row = &of_rows[stage][threadIdx.x];
			if (TQ % N == 0 || at + threadIdx.x < TQ) copy_16(place_of(row), values + at + threadIdx.x, true);
			else *row = {{0, INFINITY, 0, 0}};
		}
		end_copies();
	};
	// where keys are at first, and the values: after the first queries if there is room
	constexpr int AT = ROWS <= N ? 2 * N : 0;
	load_tile<D, ROWS, TK % ROWS == 0>(memory + AT * ROW, k + first * k_step, k_step, TK - first);
	load_tile<D, ROWS, TK % ROWS == 0>(memory + (AT + ROWS) * ROW, v + first * v_step, v_step, TK - first);
	end_copies();
	if (AT > 0) load(0, 0);
	__shared__ int in_reach[BLOCKS]; // by block of queries: whether one of them reaches one of this block's keys
	if (VANISHES) {
		for (int i = threadIdx.x; i < BLOCKS; i += ATTENTION_THREADS) in_reach[i] = 0;
		__syncthreads();
		const unsigned all = bits_of<REACH, ROWS>(first);
		for (int i = threadIdx.x; i < TQ; i += ATTENTION_THREADS) {
			if (__float_as_int(values[i].at[3]) & all) in_reach[i / N] = 1;
		}
	}
	const unsigned reaching = bits_of<REACH, 16>(own);
	auto after = [&](int block) {
		do block++;
		while (VANISHES && block < BLOCKS && !in_reach[block]);
		return block;
	};
	wait_for_copies<AT == 0 ? 0 : 1>();
	__syncthreads();
	unsigned ak[D / 16][4], av[D / 16][4];
	left_of<D>(ak, memory + (AT + warp * 16) * ROW);
	left_of<D>(av, memory + (AT + ROWS + warp * 16) * ROW);
	__syncthreads();
	if (AT == 0) load(0, 0);
	decltype(of_key(0)) key[2];
	terms_down<TK>(key, of_key, own);
	using Query = decltype(of_query(0));
	alignas(16) __shared__ Query terms[2][N];
	// of the next block, asked for while the one before is computed
	Query upcoming = of_query(within<TQ>(threadIdx.x % N));
	float out_k[D / 8][4] = {}, out_v[D / 8][4] = {};
	for (int block = 0, next, stage = 0; block < BLOCKS; block = next, stage = 1 - stage) {
		next = after(block);
		if (threadIdx.x < N) terms[stage][threadIdx.x] = upcoming;
		wait_for_copies<0>();
		__syncthreads();
		if (next < BLOCKS) {
			load(next, 1 - stage);
			upcoming = of_query(within<TQ>(next * N + threadIdx.x % N));
		}
		if (own >= TK) continue;
		const shared_at queries = memory + stage * STAGE, grads = queries + N * ROW;
#pragma unroll
		for (int at = 0; at < N; at += WIDTH) {
			const row_values *rows = of_rows[stage] + at;
			if (VANISHES && !__any_sync(0xffffffffu, __float_as_int(rows[lane % WIDTH].at[3]) & reaching)) continue;
			float s[WIDTH / 8][4], p[WIDTH / 8][4], dp[WIDTH / 8][4];
			Query query[WIDTH / 4];
			const int row = block * N + at;
			terms_across<WIDTH / 8>(query, terms[stage] + at);
			multiply_rows<D, WIDTH>(s, ak, queries + at * ROW);
			if (is_plain(row, row + WIDTH - 1, own, own + 15))
				scores_of<true, true, WIDTH / 8, TQ, TK>(p, s, score, own, row, query, key);
			else scores_of<false, true, WIDTH / 8, TQ, TK>(p, s, score, own, row, query, key);
#pragma unroll
			for (int n = 0; n < WIDTH / 8; n++) {
#pragma unroll
				for (int e = 0; e < 4; e++) {
					const row_values &of_row = rows[n * 8 + 2 * t + e % 2];
					p[n][e] = softmax_of(p[n][e], of_row.at[0], of_row.at[1]);
				}
			}
			if (none<VANISHES, WIDTH / 8>(p)) continue;
			multiply_rows<D, WIDTH>(dp, av, grads + at * ROW);
#pragma unroll
			for (int n = 0; n < WIDTH / 8; n++) {
#pragma unroll
				for (int e = 0; e < 4; e++) {
					const int in = n * 8 + 2 * t + e % 2, i = within<TQ>(row + in),
							  j = within<TK>(own + g + e / 2 * 8), r = e / 2, c = 2 * n + e % 2;
					const float x = s[n][e], power = p[n][e];
					p[n][e] = weight(power, i, j, query[c], key[r]);
					dp[n][e] = gradient(x, power, dp[n][e], rows[in].at[2], i, j, query[c], key[r]);
				}
			}
			add_product<D, WIDTH>(out_v, p, grads + at * ROW);
			add_product<D, WIDTH>(out_k, dp, queries + at * ROW);
		}
	}
	store_tile<D, K_COLUMN>(dk + first * dk_step, dk_step, TK - first, scale, out_k, tiles);
	sums_k.template add<D, K_COLUMN>(part, TK - first, tiles);
	store_tile<D, V_COLUMN>(dv + first * dv_step, dv_step, TK - first, 1, out_v, tiles);
	sums_v.template add<D, V_COLUMN>(part, TK - first, tiles);
}
