// products_of_warps are the products of attend where each warp multiplies for itself. Its queries are in registers, and
// one after another block of N keys and values in shared memory: an even one in the first half, an odd one in the
// second.
template <int D, int TQ, int TK> struct products_of_warps {
	static constexpr int N = streamed<D>, ROW = element<D>(1, 0), STAGE = 2 * N * ROW;
	static constexpr bool TOGETHER = false; // the warps of a block need not have the same squares
	unsigned queries[D / 16][4];

	__device__ static tile_row<D> *tiles() {
		alignas(16) __shared__ tile_row<D> memory[4 * N];
		return memory;
	}
	__device__ void load(const bf16 *k, int k_step, const bf16 *v, int v_step, int block) const {
		const int at = block * N;
		const shared_at to = place_of(tiles()) + block % 2 * STAGE;
		load_tile<D, N, TK % N == 0>(to, k + at * k_step, k_step, TK - at);
		load_tile<D, N, TK % N == 0>(to + N * ROW, v + at * v_step, v_step, TK - at);
		end_copies();
	}
	// begin loads 64 queries and the first block.
	__device__ void begin(const bf16 *q, int q_step, int first, const bf16 *k, int k_step, const bf16 *v, int v_step) {
		const shared_at at = place_of(tiles()) + STAGE;
		load_tile<D, 64, TQ % 64 == 0>(at, q + first * q_step, q_step, TQ - first);
		load(k, k_step, v, v_step, 0);
		wait_for_copies<0>();
		__syncthreads();
		left_of<D>(queries, at + threadIdx.x / 32 * 16 * ROW);
	}
	__device__ static void loaded() {}
	__device__ void scores(float (&s)[N / 2], int block) {
		multiply_rows<D, N>((float (*)[4])s, queries, place_of(tiles()) + block % 2 * STAGE);
	}
	__device__ static bool any(bool of_warp) { return of_warp; }
	__device__ void add(float (&out)[D / 2], float (&weights)[N / 2], int block) const {
		add_product<D, N>((float(*)[4])out, (float(*)[4])weights, place_of(tiles()) + block % 2 * STAGE + N * ROW);
	}
	template <int COLUMN> __device__ static void store(bf16 *o, int o_step, int first, float (&out)[D / 2]) {
		store_tile<D, COLUMN>(o + first * o_step, o_step, TQ - first, 1, (float(*)[4])out, tiles());
	}
};

// attend computes a part of softmax(score(Q K')) V, 64 rows, and what the backward pass needs of each: the largest
// score, and the sum of the powers. A square in which all powers are 0 is left after the first product, and not in
// reach. of_query and of_key are the terms that score and weight read.
template <class Products, int D, int TQ, int TK, int COLUMN, int REACH, class OfQuery, class OfKey, class Score,
	class Plain, class Weight>
__device__ inline void attend(int part, const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v,
	int v_step, OfQuery of_query, OfKey of_key, Score score, Plain is_plain, Weight weight, bf16 *o, int o_step,
	float *most, float *total, int *reach) {
	constexpr int N = Products::N, BLOCKS = (TK + N - 1) / N, ROWS = 64;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int first = part * ROWS, own = first + warp * 16;
	Products products;
	products.begin(q, q_step, first, k, k_step, v, v_step);
	float sums[D / 2] = {}, largest[2] = {-INFINITY, -INFINITY}, base[2] = {-INFINITY, -INFINITY}, lift[2] = {},
				   sum[2] = {};
	auto out = (float(*)[4])sums;
	bool far = false;
	unsigned reached = 0;
	decltype(of_query(0)) query[2];
	terms_down<TQ>(query, of_query, own);
	using Key = decltype(of_key(0));
	alignas(16) __shared__ Key terms[2][N];
	// of the next block, asked for while the block before is computed
	Key upcoming = of_key(within<TK>(threadIdx.x % N));
	auto square = [&](int block) {
		const int column = block * N;
		float scores[N / 2];
		auto s = (float(*)[4])scores;
		Key key[N / 4];
		terms_across<N / 8>(key, terms[block % 2]);
		products.scores(scores, block);
		if (is_plain(own, own + 15, column, column + N - 1))
			scores_of<true, false, N / 8, TQ, TK>(s, s, score, own, column, query, key);
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
		needed = __any_sync(0xffffffffu, needed);
		if (needed) reached |= 1u << column / REACH;
		if (!products.any(needed)) return;
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
				s[n][e] = weight(p, within<TQ>(own + g + e / 2 * 8), within<TK>(column + n * 8 + 2 * t + e % 2),
					query[e / 2], key[2 * n + e % 2]);
			}
		}
		products.add(sums, scores, block);
	};
	for (int block = 0; block < BLOCKS; block++) {
		if (threadIdx.x < N) terms[block % 2][threadIdx.x] = upcoming;
		wait_for_copies<0>();
		products.loaded();
		__syncthreads();
		if (block + 1 < BLOCKS) {
			products.load(k, k_step, v, v_step, block + 1);
			upcoming = of_key(within<TK>((block + 1) * N + threadIdx.x % N));
		}
		if (Products::TOGETHER || own < TQ) square(block);
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
	products.template store<COLUMN>(o, o_step, first, sums);
}
