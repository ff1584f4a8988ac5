// One block of 512 threads computes all gradients of a head of 64 columns. It goes over squares of 64 queries and 128
// keys: in each pass the tiles of queries follow each other, while the keys stay. So every product is computed once,
// and nothing is added in an order that differs from run to run.
//
// - Warpgroups 0 and 1 have 64 keys each. They compute the scores and the gradients of the scores, with a row for each
//   key, and add up dK and dV in registers.
// - Warpgroup 2 multiplies the gradients of the scores with the keys, and adds up dQ in shared memory. Warpgroups 0 and
//   1 leave the gradients of the scores there. dQ of a tile is stored after its last square.
// - Warpgroup 3 loads tiles of queries and their gradients, and the keys and values of each pass.
//
// They wait for each other at barriers, at which each warp arrives once in a phase. A thread waits for every phase, in
// their order, so it cannot miss one:
//
//	barrier        arrive      wait    a phase ends
//	keys_there     3           0, 1    when the keys and values of a pass are there; group 2 waits for change_there
//	keys_read      0, 1, 2     3       when no one needs them any more
//	rows_there     3           0, 1    when a tile of queries is there and what is known of it; two: even, odd squares
//	rows_read      0, 1        3       when no one needs it any more
//	change_there   0, 1        2       when the scores' gradients of a square are there; a barrier for each copy
//	change_read    2           0, 1    when no one needs them any more

// query_values are what a square needs of a query: log2 of what the powers of its scores are divided by, and the sum
// that the gradient of the softmax subtracts. If its largest score is not NEAR, the powers are those of differences to
// it, and logarithm is log2 of their sum.
struct alignas(16) query_values { float lift, delta, peak, logarithm; };

// head_matrices are those of a head, and row_steps the distances of their rows.
struct head_matrices { const bf16 *q, *k, *v, *grad, *o; };
struct row_steps { int q, k, v, grad, o; };

constexpr int GRADIENT_THREADS = 512;

// squares has the sizes of a block, with so many copies of the gradients of scores, and the order of its squares.
template <int QUERIES, int KEYS, int REACH_WIDTH, bool ZERO_OUT_OF_REACH, int CHANGE_COPIES> struct squares {
	static constexpr int TQ = QUERIES, TK = KEYS, REACH = REACH_WIDTH, COPIES = CHANGE_COPIES, TILES = (TQ + 63) / 64,
						 PASSES = (TK + 127) / 128, ALL = PASSES * TILES;
	static constexpr bool VANISHES = ZERO_OUT_OF_REACH;
	// The parts of the shared memory, in tiles: two of keys, values, queries and gradients each, then those of changes.
	// The sums of dQ follow, 4 KiB for each 16 rows.
	static constexpr int AT_KEYS = 0, AT_VALUES = 2 * TILE_BYTES, AT_QUERIES = 4 * TILE_BYTES,
						 AT_GRADS = 6 * TILE_BYTES, AT_CHANGES = 8 * TILE_BYTES,
						 AT_SUMS = (8 + 2 * COPIES) * TILE_BYTES, SLICE_BYTES = 4096, SLICES = (TQ + 15) / 16;

	unsigned reached[TILES]; // by tile: the bits of the keys that one of its queries reaches

	__device__ static unsigned keys_from(int first, int keys) {
		unsigned bits = 0;
		for (int i = first; i < first + keys; i += 16) bits |= i / REACH < 32 ? 1u << i / REACH : 0;
		return bits;
	}
	__device__ void find_reach(const int *reach) {
		const int lane = threadIdx.x % 32;
		for (int tile = threadIdx.x / 32; tile < TILES; tile += GRADIENT_THREADS / 32) {
			unsigned bits = 0;
			for (int i = tile * 64 + lane; i < tile * 64 + 64 && i < TQ; i += 32) bits |= VANISHES ? reach[i] : ~0u;
			bits = any_of(bits);
			if (lane == 0) reached[tile] = bits;
		}
	}
	__device__ bool has(int tile, int first, int keys) const { return (reached[tile] & keys_from(first, keys)) != 0; }
	// next is the number of the next square in which a query reaches a key: that of the pass times TILES plus that of
	// the tile.
	__device__ int next(int at) const {
		do at++;
		while (at < ALL && !has(at % TILES, at / TILES * 128, 128));
		return at;
	}
	// is_last says that no later pass has a square of the tile.
	__device__ bool is_last(int tile, int pass) const {
		do pass++;
		while (pass < PASSES && !has(tile, pass * 128, 128));
		return pass == PASSES;
	}
	// takes_turns says that the last pass has no more than 64 keys: both warpgroups have the same, and every other
	// square.
	__device__ static bool takes_turns(int pass) { return TK % 128 > 0 && TK % 128 <= 64 && pass == PASSES - 1; }
	// is_computed says whether a warpgroup has something to compute in a square.
	__device__ bool is_computed(int group, int tile, int pass, int step) const {
		return takes_turns(pass) ? step % 2 == group : has(tile, pass * 128 + group * 64, 64);
	}
};

// gradient_state is what the warpgroups of a block share, apart from the tiles. What is known of queries has two
// places, for even and for odd squares.
template <class Query, class Squares> struct gradient_state {
	using query_terms = Query;
	vec<float, 4> pairs[2][32], distant[2][32]; // of two neighbouring queries: lift and delta, and peak and logarithm
	int far[2][4];								// whether a query's largest score is not NEAR
	alignas(16) Query terms[2][64];
	alignas(8) unsigned long long barriers[10];
	Squares squares;

	__device__ shared_at barrier(int i) const { return place_of(barriers) + 8 * i; }
	__device__ shared_at keys_there() const { return barrier(0); }
	__device__ shared_at keys_read() const { return barrier(1); }
	__device__ shared_at rows_there(int stage) const { return barrier(2 + stage); }
	__device__ shared_at rows_read(int stage) const { return barrier(4 + stage); }
	__device__ shared_at change_there(int copy) const { return barrier(6 + copy); }
	__device__ shared_at change_read(int copy) const { return barrier(8 + copy); }
	// begin makes the barriers: a warp arrives once.
	__device__ void begin() const {
		make_barrier(keys_there(), 4);
		make_barrier(keys_read(), 12);
		for (int i = 0; i < 2; i++) {
			make_barrier(rows_there(i), 4);
			make_barrier(rows_read(i), 8);
			make_barrier(change_there(i), 8);
			make_barrier(change_read(i), 4);
		}
		show_barriers();
	}
};

// warp_arrives arrives after all threads of the warp.
__device__ inline void warp_arrives(shared_at barrier) {
	__syncwarp();
	if (threadIdx.x % 32 == 0) arrive_at(barrier);
}

// keep_half adds numbers of two threads, a distance apart: one keeps the upper half of them, and the other one the
// lower half.
template <int HALF> __device__ inline void keep_half(float *x, bool upper, int distance) {
#pragma unroll
	for (int i = 0; i < HALF; i++) {
		const float other = __shfl_xor_sync(0xffffffffu, upper ? x[i] : x[i + HALF], distance);
		x[i] = (upper ? x[i + HALF] : x[i]) + other;
	}
}

// column_totals are sums of two columns of results, which follow each other.
template <class Sums> struct column_totals {
	float of[2] = {};
	__device__ static int first() { return threadIdx.x % 32 / 4 * 8 + threadIdx.x % 4 * 2; }
	__device__ void add(const unsigned (&rows)[16], int left) {
		if (!Sums::there) return;
		const int g = threadIdx.x % 32 / 4;
		float x[16];
#pragma unroll
		for (int n = 0; n < 8; n++) {
			const unsigned upper = g < left ? rows[2 * n] : 0, lower = g + 8 < left ? rows[2 * n + 1] : 0;
			x[2 * n] = low_of(upper) + low_of(lower);
			x[2 * n + 1] = high_of(upper) + high_of(lower);
		}
		keep_half<8>(x, g & 4, 16);
		keep_half<4>(x, g & 2, 8);
		keep_half<2>(x, g & 1, 4);
		of[0] += x[0];
		of[1] += x[1];
	}
	// put leaves them in a row of 64 numbers.
	__device__ void put(float *row) const {
		row[first()] = of[0];
		row[first() + 1] = of[1];
	}
};

// store_result writes a warp's 16 rows of sums times scale, of which so many are left, and adds the sums of their
// columns. room is shared memory for them that no other warp uses.
template <class Totals>
__device__ inline void store_result(
	bf16 *to, int step, int left, float scale, const float (&c)[32], Totals &totals, shared_at room) {
	unsigned rows[16];
	pair_up(rows, c, scale);
	store_16_rows(to, step, left, rows, room);
	totals.add(rows, left);
}

// gradient_of_keys is the work of the two warpgroups that compute squares.
template <class State, class OfKey, class Score, class Plain, class Weight, class Gradient, class SumsK, class SumsV>
__device__ inline void gradient_of_keys(State &state, int group, shared_at memory, OfKey of_key, Score score,
	Plain is_plain, Weight weight, Gradient gradient, float scale, bf16 *dk, int dk_step, SumsK sums_k, bf16 *dv,
	int dv_step, SumsV sums_v) {
	using Squares = decltype(state.squares);
	constexpr int TQ = Squares::TQ, TK = Squares::TK, COPIES = Squares::COPIES;
	const Squares &squares = state.squares;
	const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32, g = lane / 4, t = lane % 4;
	int step = 0, keys_phase = 0;
	column_totals<SumsK> totals_k;
	column_totals<SumsV> totals_v;
#pragma unroll 1
	for (int pass = 0; pass < Squares::PASSES; pass++) {
		const bool takes_turns = Squares::takes_turns(pass);
		const int part = takes_turns ? 0 : group, first = pass * 128 + part * 64, own = first + warp * 16;
		const shared_at keys = memory + Squares::AT_KEYS + part * TILE_BYTES,
						values = memory + Squares::AT_VALUES + part * TILE_BYTES;
		float of_k[32] = {}, of_v[32] = {};
		decltype(of_key(0)) key[2];
		terms_down<TK>(key, of_key, own);
		bool begun = false;
#pragma unroll 1
		for (int tile = 0; tile < Squares::TILES; tile++) {
			if (!squares.has(tile, pass * 128, 128)) continue;
			if (!begun) {
				wait_at(state.keys_there(), keys_phase);
				keys_phase ^= 1;
				begun = true;
			}
			const int stage = step % 2, copy = step % COPIES, row = tile * 64;
			wait_at(state.rows_there(stage), step / 2 % 2);
			const shared_at queries = memory + Squares::AT_QUERIES + stage * TILE_BYTES,
							grads = memory + Squares::AT_GRADS + stage * TILE_BYTES;
			// From the shuffle, the compiler knows that all threads take the same branch: otherwise it waits after each
			// step of a product.
			if (__shfl_sync(0xffffffffu, squares.is_computed(group, tile, pass, step), 0)) {
				float s[32], x[32], dp[32];
				keep(s);
				keep(dp);
				begin_products();
				start_rows(s, keys, queries);
				end_products();
				start_rows(dp, values, grads);
				end_products();
				typename State::query_terms query[16];
				terms_across<8>(query, state.terms[stage]);
				wait_for_products<1>();
				keep(s);
#pragma unroll
				for (int i = 0; i < 32; i++) x[i] = s[i];
				auto of_8 = [](float *sums) { return (float(*)[4])sums; };
				if (is_plain(row, row + 63, own, own + 15))
					scores_of<true, true, 8, TQ, TK>(of_8(s), of_8(x), score, own, row, query, key);
				else scores_of<false, true, 8, TQ, TK>(of_8(s), of_8(x), score, own, row, query, key);
				const bool far = state.far[stage][0] | state.far[stage][1] | state.far[stage][2] | state.far[stage][3];
				if (far) {
#pragma unroll
					for (int n = 0; n < 8; n++) {
						const vec<float, 4> two = state.distant[stage][n * 4 + t];
#pragma unroll
						for (int e = 0; e < 4; e++)
							s[n * 4 + e] = softmax_of(s[n * 4 + e], two.at[e % 2 * 2], two.at[e % 2 * 2 + 1]);
					}
				}
				float delta[16];
#pragma unroll
				for (int n = 0; n < 8; n++) {
					const vec<float, 4> two = state.pairs[stage][n * 4 + t];
					delta[2 * n] = two.at[1], delta[2 * n + 1] = two.at[3];
#pragma unroll
					for (int e = 0; e < 4; e++) {
						if (!far) s[n * 4 + e] = power_of_2(fmaf(s[n * 4 + e], LOG2_E, -two.at[e % 2 * 2]));
						if (TK % 64 && own + g + e / 2 * 8 >= TK) s[n * 4 + e] = 0;
					}
				}
				wait_for_products<0>();
				keep(dp);
				const bool vanishes = none<Squares::VANISHES, 8>(of_8(s)); // then a gradient of 0 times NaN is 0
#pragma unroll
				for (int n = 0; n < 8; n++) {
#pragma unroll
					for (int e = 0; e < 4; e++) {
						const int i = within<TQ>(row + n * 8 + 2 * t + e % 2), j = within<TK>(own + g + e / 2 * 8),
								  at = n * 4 + e, q = 2 * n + e % 2;
						dp[at] = gradient(x[at], s[at], dp[at], delta[q], i, j, query[q], key[e / 2]);
						s[at] = weight(s[at], i, j, query[q], key[e / 2]);
					}
				}
				if (vanishes) {
#pragma unroll
					for (int i = 0; i < 32; i++) dp[i] = 0;
				}
				unsigned weights[16], change[16];
				pair_up(weights, s, 1);
				pair_up(change, dp, 1);
				if (step >= COPIES) wait_at(state.change_read(copy), (step / COPIES - 1) % 2);
				store_rows(
					memory + Squares::AT_CHANGES + (2 * copy + group) * TILE_BYTES + warp * 16 * ROW_BYTES, change);
				show();
				warp_arrives(state.change_there(copy));
				keep(weights);
				keep(change);
				keep(of_v);
				keep(of_k);
				begin_products();
				start_sum(of_v, weights, grads);
				start_sum(of_k, change, queries);
				end_products();
				wait_for_products<0>();
				keep(of_v);
				keep(of_k);
				keep(weights);
				keep(change);
			} else {
				if (step >= COPIES) wait_at(state.change_read(copy), (step / COPIES - 1) % 2);
				warp_arrives(state.change_there(copy));
			}
			warp_arrives(state.rows_read(stage));
			step++;
		}
		if (begun) warp_arrives(state.keys_read());
		if (takes_turns) { // each warpgroup stores the sum of one matrix
			const shared_at sums = memory + Squares::AT_QUERIES;
			meet<256>(1);
			if (group == 0) put_sums(sums + threadIdx.x * 16, 4096, of_v);
			else put_sums(sums + threadIdx.x * 16, 4096, of_k);
			meet<256>(1);
			if (group == 0) read_sums<true>(of_k, sums + (threadIdx.x ^ 128) * 16, 4096);
			else read_sums<true>(of_v, sums + (threadIdx.x ^ 128) * 16, 4096);
		}
		const int copy = step % COPIES; // the next change's memory is free until then
		if (step >= COPIES) wait_at(state.change_read(copy), (step / COPIES - 1) % 2);
		const shared_at room = memory + Squares::AT_CHANGES + (2 * copy + group) * TILE_BYTES + warp * 16 * ROW_BYTES;
		if (!takes_turns || group == 0)
			store_result(dk + own * dk_step, dk_step, TK - own, scale, of_k, totals_k, room);
		if (!takes_turns || group == 1) store_result(dv + own * dv_step, dv_step, TK - own, 1, of_v, totals_v, room);
	}
	if (SumsK::there || SumsV::there) {
		auto of_warps = (float(*)[8][64])memory_at(memory + Squares::AT_QUERIES);
		meet<256>(1);
		totals_k.put(of_warps[0][threadIdx.x / 32]);
		totals_v.put(of_warps[1][threadIdx.x / 32]);
		meet<256>(1);
		if (threadIdx.x < 128) {
			const int matrix = threadIdx.x / 64, column = threadIdx.x % 64;
			float x = 0;
			for (int i = 0; i < 8; i++) x += of_warps[matrix][i][column];
			if constexpr (SumsK::there) {
				if (matrix == 0) sums_k.first[column] = x;
			}
			if constexpr (SumsV::there) {
				if (matrix == 1) sums_v.first[column] = x;
			}
		}
	}
}

// gradient_of_queries is the work of the warpgroup that adds up dQ.
template <class State, class Sums>
__device__ inline void gradient_of_queries(
	State &state, shared_at memory, float scale, bf16 *dq, int dq_step, Sums sums_q) {
	using Squares = decltype(state.squares);
	constexpr int TQ = Squares::TQ, COPIES = Squares::COPIES;
	const Squares &squares = state.squares;
	const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
	column_totals<Sums> totals;
	unsigned begun = 0; // by tile: whether there is a sum
	int at = squares.next(-1);
#pragma unroll 1
	for (int step = 0; at < Squares::ALL; step++) {
		const int tile = at % Squares::TILES, pass = at / Squares::TILES, copy = step % COPIES,
				  further = squares.next(at), slice = tile * 4 + warp;
		// A warp beyond the last slice goes along, and adds up what no one reads. It has room for 16 rows in bf16.
		const bool there = slice < Squares::SLICES;
		const shared_at sums =
			memory + Squares::AT_SUMS +
			(there ? slice * Squares::SLICE_BYTES
				   : Squares::SLICES * Squares::SLICE_BYTES + (slice - Squares::SLICES) * 16 * ROW_BYTES);
		float sum[32];
		const bool more = begun >> tile & 1;
		if (there && more) read_sums<false>(sum, sums + lane * 16, 512);
		wait_at(state.change_there(copy), step / COPIES % 2);
		const bool upper = squares.is_computed(1, tile, pass, step),
				   both = upper && squares.is_computed(0, tile, pass, step);
		const shared_at changes = memory + Squares::AT_CHANGES + 2 * copy * TILE_BYTES,
						keys = memory + Squares::AT_KEYS;
		keep(sum);
		begin_products();
		if (both) { // each branch waits for itself: otherwise the compiler waits after each step of all products
			start_turned(sum, changes, keys, more);
			start_turned(sum, changes + TILE_BYTES, keys + TILE_BYTES, true);
			end_products();
			wait_for_products<0>();
		} else {
			start_turned(sum, changes + upper * TILE_BYTES,
				keys + (Squares::takes_turns(pass) ? 0 : upper * TILE_BYTES), more);
			end_products();
			wait_for_products<0>();
		}
		keep(sum);
		warp_arrives(state.change_read(copy));
		if (further / Squares::TILES != pass) warp_arrives(state.keys_read());
		if (squares.is_last(tile, pass))
			store_result(dq + (tile * 64 + warp * 16) * dq_step, dq_step, TQ - tile * 64 - warp * 16, scale, sum,
				totals, sums);
		else if (there) put_sums(sums + lane * 16, 512, sum);
		begun |= 1u << tile;
		at = further;
	}
#pragma unroll 1
	for (int tile = 0; tile < Squares::TILES; tile++) { // a tile that reaches no key
		for (int i = threadIdx.x % 128; i < 64 * 8; i += 128) {
			const int row = tile * 64 + i / 8;
			if (!(begun >> tile & 1) && row < TQ) *(vec<unsigned, 4> *)(dq + row * dq_step + i % 8 * 8) = {};
		}
	}
	if constexpr (Sums::there) {
		auto of_warps = (float(*)[64])memory_at(memory + Squares::AT_SUMS);
		meet<128>(2);
		totals.put(of_warps[warp]);
		meet<128>(2);
		const int column = threadIdx.x % 128;
		if (column < 64)
			sums_q.first[column] =
				of_warps[0][column] + of_warps[1][column] + of_warps[2][column] + of_warps[3][column];
	}
}

// load_squares is the work of the warpgroup that loads tiles. A thread has every other part of one row of queries and
// gradients, and one part of every sixteenth row of keys and values.
template <class State, class Matrices, class OfQuery>
__device__ inline void load_squares(State &state, shared_at memory, int batch, int batches, Matrices matrices_of,
	row_steps steps, const float *most, const float *total, OfQuery of_query, query_values *values) {
	using Squares = decltype(state.squares);
	constexpr int TQ = Squares::TQ, TK = Squares::TK;
	const Squares &squares = state.squares;
	const int thread = threadIdx.x % 128, warp = thread / 32, lane = thread % 32, row = thread / 2,
			  side = thread % 2 * 8;
	const head_matrices own = matrices_of(batch);
	const bf16 *from_q = own.q + row * steps.q + side, *from_grad = own.grad + row * steps.grad + side,
			   *from_o = own.o + row * steps.o + side;
	const shared_at to_row = part_of(row, thread % 2), to_key = part_of(thread / 8, thread % 8);
	const int following = batch + multiprocessor_ids(); // the head of a block that may run here next
	unsigned known = 0;								 // by tile: whether values has those of its queries
	int loaded = -1, keys_phase = 0;				 // the pass whose keys are in memory
	int at = squares.next(-1);
#pragma unroll 1
	for (int step = 0; at < Squares::ALL; step++) {
		const int tile = at % Squares::TILES, pass = at / Squares::TILES, stage = step % 2, of = tile * 64 + row;
		const bool there = TQ % 64 == 0 || of < TQ, first = !(known >> tile & 1);
		known |= 1u << tile;
		vec<bf16, 8> result[4];
		query_values value = {INFINITY, 0, 0, INFINITY};
		if (there && first) {
#pragma unroll
			for (int i = 0; i < 4; i++) result[i] = *(const vec<bf16, 8> *)(from_o + tile * 64 * steps.o + i * 16);
			value.peak = most[of];
			value.logarithm = total[of];
		} else if (there) value = values[of];
		const auto query = of_query(within<TQ>(tile * 64 + thread % 64));
		if (step >= 2) wait_at(state.rows_read(stage), (step / 2 - 1) % 2);
		const bf16 *next_q = there ? from_q + tile * 64 * steps.q : own.q,
				   *next_grad = there ? from_grad + tile * 64 * steps.grad : own.grad;
		const shared_at to_q = memory + Squares::AT_QUERIES + stage * TILE_BYTES + to_row,
						to_grad = memory + Squares::AT_GRADS + stage * TILE_BYTES + to_row;
#pragma unroll
		for (int i = 0; i < 4; i++) { // parts whose numbers differ by 2 i are 32 i bytes apart, or back
			copy_16(to_q ^ i * 32, next_q + i * 16, there);
			copy_16(to_grad ^ i * 32, next_grad + i * 16, there);
		}
		end_copies();
		if (pass != loaded) {
			if (loaded >= 0) {
				wait_at(state.keys_read(), keys_phase);
				keys_phase ^= 1;
			}
			loaded = pass;
			const int key = pass * 128 + thread / 8;
			const bf16 *from_k = own.k + key * steps.k + thread % 8 * 8,
					   *from_v = own.v + key * steps.v + thread % 8 * 8;
#pragma unroll
			for (int i = 0; i < 8; i++) {
				const bool key_there = TK % 128 == 0 || key + 16 * i < TK;
				const shared_at to = memory + to_key + i * 16 * ROW_BYTES;
				copy_16(to + Squares::AT_KEYS, key_there ? from_k + i * 16 * steps.k : own.k, key_there);
				copy_16(to + Squares::AT_VALUES, key_there ? from_v + i * 16 * steps.v : own.v, key_there);
			}
			end_copies();
			wait_for_copies<0>();
			show();
			warp_arrives(state.keys_there());
		}
		wait_for_copies<0>();
		if (first) {
			float x[4] = {};
#pragma unroll
			for (int i = 0; i < 4 && there; i++) {
				const vec<bf16, 8> part = *(const vec<bf16, 8> *)memory_at(to_grad ^ i * 32);
#pragma unroll
				for (int j = 0; j < 8; j++) x[j % 4] += float(result[i].at[j]) * float(part.at[j]);
			}
			const float sum = x[0] + x[1] + (x[2] + x[3]), logarithm = log2f(value.logarithm);
			value = {there ? value.peak * LOG2_E + logarithm : INFINITY, sum + __shfl_xor_sync(0xffffffffu, sum, 1),
				value.peak, logarithm};
			if (there) values[of] = value;
		}
		const bool far = __any_sync(0xffffffffu, !(fabsf(value.peak) <= NEAR));
		if (thread % 2 == 0) {
			((vec<float, 2> *)state.pairs[stage])[row] = {{value.lift, value.delta}};
			((vec<float, 2> *)state.distant[stage])[row] = {{value.peak, value.logarithm}};
		}
		if (lane == 0) state.far[stage][warp] = far;
		if (thread < 64) state.terms[stage][thread] = query;
		show();
		warp_arrives(state.rows_there(stage));
		at = squares.next(at);
		if (at / Squares::TILES == pass || following >= batches) continue;
		const head_matrices ahead = matrices_of(following);
#pragma unroll 1
		for (int i = thread + 128 * pass; i < max(TQ, TK); i += 128 * Squares::PASSES) { // a part after each pass
			if (i < TQ) {
				fetch_ahead(ahead.q + i * steps.q);
				fetch_ahead(ahead.grad + i * steps.grad);
				fetch_ahead(ahead.o + i * steps.o);
			}
			if (i < TK) {
				fetch_ahead(ahead.k + i * steps.k);
				fetch_ahead(ahead.v + i * steps.v);
			}
		}
	}
}

// attend_gradients computes the gradients of a head: scale_q times dQ, scale_k times dK, dV, and the sums of their
// columns. gradient(...) is the gradient of a product Q K', weight(...) is what the product with V reads. of_query and
// of_key are the terms that the functions read. values is scratch memory of the head.
template <class Squares, class Matrices, class OfQuery, class OfKey, class Score, class Plain, class Weight,
	class Gradient, class SumsQ, class SumsK, class SumsV>
__device__ inline void attend_gradients(int batch, int batches, Matrices matrices_of, row_steps steps,
	const float *most, const float *total, const int *reach, OfQuery of_query, OfKey of_key, Score score,
	Plain is_plain, Weight weight, Gradient gradient, float scale_q, bf16 *dq, int dq_step, SumsQ sums_q,
	float scale_k, bf16 *dk, int dk_step, SumsK sums_k, bf16 *dv, int dv_step, SumsV sums_v, query_values *values) {
	__shared__ gradient_state<decltype(of_query(0)), Squares> state;
	static_assert(sizeof(state) - sizeof(state.terms) <= 3 << 10, "attentionblock.go has another size");
	const shared_at memory = large_memory();
	const int group = __shfl_sync(0xffffffffu, threadIdx.x / 128, 0);
	if (threadIdx.x == 0) state.begin();
	state.squares.find_reach(reach);
	__syncthreads();
	// 2 * 192 + 72 + 56 registers are those of four warpgroups with 128 each.
	if (group < 2) {
		take_registers<192>();
		gradient_of_keys(state, group, memory, of_key, score, is_plain, weight, gradient, scale_k, dk, dk_step,
			sums_k, dv, dv_step, sums_v);
	} else if (group == 2) {
		leave_registers<72>();
		gradient_of_queries(state, memory, scale_q, dq, dq_step, sums_q);
	} else {
		leave_registers<56>();
		load_squares(state, memory, batch, batches, matrices_of, steps, most, total, of_query, values);
	}
}
