// How the blocks of a kernel complete the sums of columns of which each has left partial sums: those that arrive last
// add them up, in an order that does not depend on which these are.

#ifdef __CUDACC__
// count_arrival counts one more, from 0 up to a limit and then from 0 again, and returns the number before. What all
// threads of the block have written before a barrier is in memory then, and what other blocks have written before they
// were counted can be read after it.
__device__ inline unsigned count_arrival(unsigned *arrived, unsigned limit) {
	unsigned before;
	asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;" : "=r"(before) : "l"(arrived), "r"(limit) : "memory");
	return before;
}
#endif

// is_last reports whether the block is the last one of so many to come here. The last one leaves 0 in the counter, for
// the next launch.
__device__ inline bool is_last(unsigned *arrived, unsigned count) {
	__syncthreads();
	return __syncthreads_or(threadIdx.x == 0 && count_arrival(arrived, count - 1) == count - 1);
}

// add_rows adds up rows of ITEMS numbers, and calls put with each number of the sum. Where there are more threads than
// numbers, they divide the rows, and leave their parts in shared memory, of THREADS numbers.
template <int THREADS, int ITEMS, class Read, class Add, class Put>
__device__ inline void add_rows(float *parts, int rows, Read read, Add add, Put put) {
	constexpr int MOST_PARTS = 16, FIT = THREADS / ITEMS, PARTS = FIT < MOST_PARTS ? FIT : MOST_PARTS;
	if constexpr (PARTS <= 1) {
		for (int i = threadIdx.x; i < ITEMS; i += THREADS) {
			float x = read(0, i);
#pragma unroll 8
			for (int row = 1; row < rows; row++) x = add(i, x, read(row, i));
			put(i, x);
		}
	} else {
		const int part = threadIdx.x / ITEMS, own = threadIdx.x % ITEMS;
		if (part < PARTS && part < rows) {
			float x = read(part, own);
#pragma unroll 8
			for (int row = part + PARTS; row < rows; row += PARTS) x = add(own, x, read(row, own));
			parts[threadIdx.x] = x;
		}
		__syncthreads();
		if (part > 0) return;
		float x = parts[own];
		for (int i = 1; i < PARTS && i < rows; i++) x = add(own, x, parts[i * ITEMS + own]);
		put(own, x);
	}
}

// complete adds up the partial sums of blocks: ITEMS numbers of each, one after another. The last block of each GROUP
// adds up those of the group, in place of the first one, and the last of these blocks adds up the groups' sums. So no
// block reads many rows: a multiprocessor alone reads slowly. arrived has a counter for each group, and if there are
// several, one for them. All are 0 before a launch and after it.
template <int THREADS, int ITEMS, int BLOCKS, int GROUP, class Add, class Put>
__device__ inline void complete(float *parts, float *partials, unsigned *arrived, Add add, Put put) {
	constexpr int GROUPS = (BLOCKS + GROUP - 1) / GROUP;
	const int group = blockIdx.x / GROUP, first = group * GROUP,
			  members = first + GROUP < BLOCKS ? GROUP : BLOCKS - first;
	if (!is_last(arrived + group, members)) return;
	float *own = partials + first * ITEMS;
	const auto member = [&](int row, int i) { return read_fresh(own + row * ITEMS + i); };
	if (GROUPS == 1) {
		add_rows<THREADS, ITEMS>(parts, members, member, add, put);
		return;
	}
	add_rows<THREADS, ITEMS>(parts, members, member, add, [&](int i, float x) { own[i] = x; });
	if (!is_last(arrived + GROUPS, GROUPS)) return;
	const auto of_group = [&](int row, int i) { return read_fresh(partials + row * GROUP * ITEMS + i); };
	add_rows<THREADS, ITEMS>(parts, GROUPS, of_group, add, put);
}
