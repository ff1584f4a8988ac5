// products_of_group are the products of attend by the four warps of a block together, for queries, keys and values of
// 64 columns. All are in shared memory: blocks of 64 keys and values as in products_of_warps, and then the queries.
template <int TQ, int TK> struct products_of_group {
	static constexpr int N = 64;
	static constexpr bool TOGETHER = true;
	const shared_at keys = large_memory(), queries = keys + 4 * TILE_BYTES;

	template <int ROWS> __device__ static void load_rows(shared_at to, const bf16 *from, int step, int first) {
		const int row = threadIdx.x / 8, part = threadIdx.x % 8;
#pragma unroll
		for (int i = 0; i < 64; i += 16) {
			const bool there = ROWS % 64 == 0 || first + row + i < ROWS;
			copy_16(to + part_of(row, part) + i * ROW_BYTES, from + (there ? first + row + i : 0) * step + part * 8,
				there);
		}
	}
	__device__ shared_at place(int block) const { return keys + block % 2 * 2 * TILE_BYTES; }
	__device__ void load(const bf16 *k, int k_step, const bf16 *v, int v_step, int block) const {
		load_rows<TK>(place(block), k, k_step, block * N);
		load_rows<TK>(place(block) + TILE_BYTES, v, v_step, block * N);
		end_copies();
	}
	__device__ void begin(
		const bf16 *q, int q_step, int first, const bf16 *k, int k_step, const bf16 *v, int v_step) const {
		load_rows<TQ>(queries, q, q_step, first);
		load(k, k_step, v, v_step, 0);
	}
	__device__ static void loaded() { show(); }
	__device__ void scores(float (&s)[32], int block) const {
		keep(s);
		begin_products();
		start_rows(s, queries, place(block));
		end_products();
		wait_for_products<0>();
		keep(s);
	}
	__device__ static bool any(bool of_warp) { return __syncthreads_or(of_warp); }
	__device__ void add(float (&out)[32], const float (&weights)[32], int block) const {
		unsigned rounded[16];
		pair_up(rounded, weights, 1);
		keep(rounded);
		keep(out);
		begin_products();
		start_sum(out, rounded, place(block) + TILE_BYTES);
		end_products();
		wait_for_products<0>();
		keep(out);
		keep(rounded);
	}
	template <int COLUMN> __device__ void store(bf16 *o, int o_step, int first, const float (&out)[32]) const {
		static_assert(COLUMN == 1, "results are written in rows");
		const int own = first + threadIdx.x / 32 * 16;
		unsigned rounded[16];
		pair_up(rounded, out, 1);
		__syncthreads(); // the keys have been read
		store_16_rows(o + own * o_step, o_step, TQ - own, rounded, keys + threadIdx.x / 32 * 16 * ROW_BYTES);
	}
};
