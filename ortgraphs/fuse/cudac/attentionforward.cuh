// attend computes a part of softmax(score(Q K')) V, 64 rows, and what the backward pass needs of each: the largest score, and the sum of the
// powers. A square in which all powers are 0 is left after the first product, and not in reach. of_query and of_key are the terms that score and
// weight read.
template <int D, int TQ, int TK, int COLUMN, int REACH, class OfQuery, class OfKey, class Score, class Plain, class Weight>
__device__ inline void attend(int part, const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v, int v_step, OfQuery of_query, OfKey of_key, Score score,
							  Plain is_plain, Weight weight, bf16 *o, int o_step, float *most, float *total, int *reach) {
	constexpr int N = streamed<D>, BLOCKS = (TK + N - 1) / N, ROWS = 64;
	alignas(16) __shared__ unsigned short tiles[4 * N][D + 8];
	const shared_at memory = place_of(tiles);
	constexpr int ROW = element<D>(1, 0), STAGE = 2 * N * ROW;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int first = part * ROWS, own = first + warp * 16;
	auto load = [&](int block) {
		const int at = block * N;
		const shared_at to = memory + block % 2 * STAGE;
		load_tile<D, N, TK % N == 0>(to, k + at * k_step, k_step, TK - at);
		load_tile<D, N, TK % N == 0>(to + N * ROW, v + at * v_step, v_step, TK - at);
		end_copies();
	};
	load_tile<D, ROWS, TQ % ROWS == 0>(memory + STAGE, q + first * q_step, q_step, TQ - first);
	load(0);
	wait_for_copies<0>();
	__syncthreads();
	unsigned a[D / 16][4];
	left_of<D>(a, memory + STAGE + warp * 16 * ROW);
	float out[D / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, base[2] = {-INFINITY, -INFINITY}, lift[2] = {}, sum[2] = {};
	bool far = false;
	unsigned reached = 0;
	decltype(of_query(0)) query[2];
	terms_down<TQ>(query, of_query, own);
	using Key = decltype(of_key(0));
	alignas(16) __shared__ Key terms[2][N];
	Key upcoming = of_key(within<TK>(threadIdx.x % N)); // of the next block, asked for while the block before is computed
	auto square = [&](int block, shared_at keys) {
		const int column = block * N;
		float s[N / 8][4];
		Key key[N / 4];
		terms_across<N / 8>(key, terms[block % 2]);
		multiply_rows<D, N>(s, a, keys);
		if (is_plain(own, own + 15, column, column + N - 1)) scores_of<true, false, N / 8, TQ, TK>(s, s, score, own, column, query, key);
		else scores_of<false, false, N / 8, TQ, TK>(s, s, score, own, column, query, key);
		float top[2] = {-INFINITY, -INFINITY};
#pragma unroll
		for (int n = 0; n < N / 8; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				if (TK % N && column + n * 8 + 2 * t + e % 2 >= TK) s[n][e] = -INFINITY;
				top[e / 2] = fmaxf(top[e / 2], s[n][e]);
			}
		}
		bool needed = false, raised = false;
#pragma unroll
		for (int h = 0; h < 2; h++) {
			top[h] = most_of_four(top[h]);
			needed |= !(top[h] < largest[h] + DISTANT);
			raised |= !(top[h] <= base[h] + RISE);
			largest[h] = fmaxf(largest[h], top[h]);
		}
		if (!__any_sync(0xffffffffu, needed)) return;
		reached |= 1u << column / REACH;
		if (__any_sync(0xffffffffu, raised)) {
			bool distant = false;
#pragma unroll
			for (int h = 0; h < 2; h++) {
				const float next = finite(largest[h]), scale = power_of_2((base[h] - next) * LOG2_E);
				base[h] = largest[h];
				lift[h] = next * LOG2_E;
				distant |= !(fabsf(next) <= NEAR);
				sum[h] *= scale;
#pragma unroll
				for (int n = 0; n < D / 8; n++) {
					out[n][2 * h] *= scale;
					out[n][2 * h + 1] *= scale;
				}
			}
			far = __any_sync(0xffffffffu, distant);
		}
		if (far) {
			subtract<N / 8>(s, base);
			lift[0] = lift[1] = 0;
		}
#pragma unroll
		for (int n = 0; n < N / 8; n++) {
#pragma unroll
			for (int e = 0; e < 4; e++) {
				const float p = power_of_2(fmaf(s[n][e], LOG2_E, -lift[e / 2]));
				sum[e / 2] += p;
				s[n][e] = weight(p, within<TQ>(own + g + e / 2 * 8), within<TK>(column + n * 8 + 2 * t + e % 2), query[e / 2], key[2 * n + e % 2]);
			}
		}
		add_product<D, N>(out, s, keys + N * ROW);
	};
	for (int block = 0; block < BLOCKS; block++) {
		if (threadIdx.x < N) terms[block % 2][threadIdx.x] = upcoming;
		wait_for_copies<0>();
		__syncthreads();
		if (block + 1 < BLOCKS) {
			load(block + 1);
			upcoming = of_key(within<TK>((block + 1) * N + threadIdx.x % N));
		}
		if (own < TQ) square(block, memory + block % 2 * STAGE);
	}
#pragma unroll
	for (int h = 0; h < 2; h++) {
		const float all = sum_of_four(sum[h]), share = __fdividef(1.f, all);
#pragma unroll
		for (int n = 0; n < D / 8; n++) {
			out[n][2 * h] *= share;
			out[n][2 * h + 1] *= share;
		}
		const int row = own + g + 8 * h;
		if (most && t == 0 && row < TQ) {
			most[row] = largest[h];
			total[row] = largest[h] == -INFINITY ? NAN : all * power_of_2((base[h] - largest[h]) * LOG2_E);
			if (reach) reach[row] = reached;
		}
	}
	store_tile<D, COLUMN>(o + first * o_step, o_step, TQ - first, 1, out, tiles);
}
