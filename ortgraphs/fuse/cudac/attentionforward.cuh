// attend computes a part of softmax(score(Q K')) V, 64 * M rows, and what the backward pass needs of each: the largest score, and the sum of
// the powers. A square in which all powers are 0 is left after the first product, and not in reach.
template <int D, int M, int TQ, int TK, int COLUMN, int REACH, class Score, class Plain, class Weight>
__device__ inline void attend(int part, const bf16 *q, int q_step, const bf16 *k, int k_step, const bf16 *v, int v_step, Score score, Plain is_plain, Weight weight,
							  bf16 *o, int o_step, float *most, float *total, int *reach) {
	constexpr int N = streamed<D>, BLOCKS = (TK + N - 1) / N, ROWS = 64 * M;
	alignas(16) __shared__ unsigned short tiles[4 * N][D + 8];
	const shared_at memory = place_of(tiles);
	constexpr int ROW = element<D>(1, 0), STAGE = 2 * N * ROW;
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	const int first = part * ROWS, own = first + warp * 16 * M;
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
	unsigned a[M][D / 16][4];
	left_of<D, M>(a, memory + STAGE + warp * 16 * M * ROW);
	float out[M][D / 8][4] = {}, largest[M][2], base[M][2], lift[M][2] = {}, sum[M][2] = {};
#pragma unroll
	for (int r = 0; r < 2 * M; r++) largest[r / 2][r % 2] = base[r / 2][r % 2] = -INFINITY;
	bool far = false;
	unsigned reached = 0;
	auto square = [&](int column, shared_at keys) {
		float s[M][N / 8][4];
		multiply_rows<D, N, M>(s, a, keys);
		bool needed = false, raised = false;
		if (is_plain(own, own + 16 * M - 1, column, column + N - 1)) scores_of<true, false, M, N / 8, TQ, TK>(s, s, score, own, column);
		else scores_of<false, false, M, N / 8, TQ, TK>(s, s, score, own, column);
		float top[M][2];
#pragma unroll
		for (int m = 0; m < M; m++) {
			top[m][0] = top[m][1] = -INFINITY;
#pragma unroll
			for (int n = 0; n < N / 8; n++) {
#pragma unroll
				for (int e = 0; e < 4; e++) {
					if (TK % N && column + n * 8 + 2 * t + e % 2 >= TK) s[m][n][e] = -INFINITY;
					top[m][e / 2] = fmaxf(top[m][e / 2], s[m][n][e]);
				}
			}
		}
#pragma unroll
		for (int m = 0; m < M; m++) {
#pragma unroll
			for (int h = 0; h < 2; h++) {
				top[m][h] = most_of_four(top[m][h]);
				needed |= !(top[m][h] < largest[m][h] + DISTANT);
				raised |= !(top[m][h] <= base[m][h] + RISE);
				largest[m][h] = fmaxf(largest[m][h], top[m][h]);
			}
		}
		if (!__any_sync(0xffffffffu, needed)) return;
		reached |= 1u << column / REACH;
		if (__any_sync(0xffffffffu, raised)) {
			bool distant = false;
#pragma unroll
			for (int m = 0; m < M; m++) {
#pragma unroll
				for (int h = 0; h < 2; h++) {
					const float next = finite(largest[m][h]), scale = power_of_2((base[m][h] - next) * LOG2_E);
					base[m][h] = largest[m][h];
					lift[m][h] = next * LOG2_E;
					distant |= !(fabsf(next) <= NEAR);
					sum[m][h] *= scale;
#pragma unroll
					for (int n = 0; n < D / 8; n++) {
						out[m][n][2 * h] *= scale;
						out[m][n][2 * h + 1] *= scale;
					}
				}
			}
			far = __any_sync(0xffffffffu, distant);
		}
		if (far) {
			subtract<M, N / 8>(s, base);
#pragma unroll
			for (int r = 0; r < 2 * M; r++) lift[r / 2][r % 2] = 0;
		}
#pragma unroll
		for (int m = 0; m < M; m++) {
#pragma unroll
			for (int n = 0; n < N / 8; n++) {
#pragma unroll
				for (int e = 0; e < 4; e++) {
					const int row = own + m * 16 + g + e / 2 * 8, at = column + n * 8 + 2 * t + e % 2;
					const float p = power_of_2(fmaf(s[m][n][e], LOG2_E, -lift[m][e / 2]));
					sum[m][e / 2] += p;
					s[m][n][e] = weight(p, TQ % 64 && row >= TQ ? TQ - 1 : row, TK % 64 && at >= TK ? TK - 1 : at);
				}
			}
		}
		add_product<D, N, M>(out, s, keys + N * ROW);
	};
	for (int block = 0; block < BLOCKS; block++) {
		wait_for_copies<0>();
		__syncthreads();
		if (block + 1 < BLOCKS) load(block + 1);
		if (own < TQ) square(block * N, memory + block % 2 * STAGE);
	}
#pragma unroll
	for (int m = 0; m < M; m++) {
#pragma unroll
		for (int h = 0; h < 2; h++) {
			const float all = sum_of_four(sum[m][h]), share = __fdividef(1.f, all);
#pragma unroll
			for (int n = 0; n < D / 8; n++) {
				out[m][n][2 * h] *= share;
				out[m][n][2 * h + 1] *= share;
			}
			const int row = own + m * 16 + g + 8 * h;
			if (most && t == 0 && row < TQ) {
				most[row] = largest[m][h];
				total[row] = largest[m][h] == -INFINITY ? NAN : all * power_of_2((base[m][h] - largest[m][h]) * LOG2_E);
				if (reach) reach[row] = reached;
			}
		}
	}
	store_tile<D, M, COLUMN>(o + first * o_step, o_step, TQ - first, 1, out, tiles);
}
