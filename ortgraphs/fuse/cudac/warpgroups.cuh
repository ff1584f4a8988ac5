// Products of matrices of bf16 by warpgroups: four warps each, with sums in f32. GPUs of compute capability 9.0 have
// them. A product reads matrices from shared memory in rows of 64 elements, 128 bytes. Their eight parts of 16 bytes
// are in the order of their number XOR that of the row, so that the same part of eight rows is in different banks.

#ifdef __CUDACC__
// A barrier is in shared memory. It counts arrivals, and has phases: a thread waits for the end of an even or of an odd
// one.
__device__ inline void make_barrier(shared_at barrier, int arrivals) {
	asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void show_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void arrive_at(shared_at barrier) {
	asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
__device__ inline void wait_at(shared_at barrier, int phase) {
	asm volatile(
		"{\n.reg .pred done;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n@!done bra again;\n}" ::
			"r"(barrier),
		"r"(phase)
		: "memory");
}
// meet waits until so many threads have come to the meeting of that number.
template <int THREADS> __device__ inline void meet(int number) {
	asm volatile("bar.sync %0, %1;" ::"r"(number), "n"(THREADS) : "memory");
}

// take_registers and leave_registers set how many registers a thread of a warpgroup has. What some leave, others can
// take.
template <int N> __device__ inline void take_registers() {
	asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
}
template <int N> __device__ inline void leave_registers() {
	asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
}

// multiprocessor_ids is the number of multiprocessors, or more where the GPU does not number them without gaps.
__device__ inline int multiprocessor_ids() {
	int n;
	asm("mov.u32 %0, %%nsmid;" : "=r"(n));
	return n;
}

__device__ inline vec<unsigned, 4> read_16(shared_at from) {
	vec<unsigned, 4> v;
	asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
		: "=r"(v.at[0]), "=r"(v.at[1]), "=r"(v.at[2]), "=r"(v.at[3])
		: "r"(from)
		: "memory");
	return v;
}
__device__ inline void write_16(shared_at to, const vec<unsigned, 4> &v) {
	asm volatile(
		"st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(v.at[0]), "r"(v.at[1]), "r"(v.at[2]), "r"(v.at[3])
		: "memory");
}
// store_matrices stores four matrices of 8x8: the threads 8i to 8i+7 give the rows of matrix i.
__device__ inline void store_matrices(shared_at row, const unsigned *r) {
	asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row), "r"(r[0]), "r"(r[1]),
		"r"(r[2]), "r"(r[3])
		: "memory");
}

// show makes what this thread has written to shared memory visible to products. begin_products has to come before
// products that use registers. end_products makes a group of the products since the last one. wait_for_products waits
// for all groups but so many. Until then, products run, and nothing else may use their registers.
__device__ inline void show() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int GROUPS> __device__ inline void wait_for_products() {
	asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(GROUPS) : "memory");
}
// keep tells the compiler that products use registers until here, or from here on.
template <int N> __device__ inline void keep(float (&r)[N]) {
#pragma unroll
	for (int i = 0; i < N; i++) asm volatile("" : "+f"(r[i])::"memory");
}
template <int N> __device__ inline void keep(unsigned (&r)[N]) {
#pragma unroll
	for (int i = 0; i < N; i++) asm volatile("" : "+r"(r[i])::"memory");
}

// described is a matrix as a product takes it: its place divided by 16, the distance of eight rows from the next eight
// divided by 16, in bits 32 and up, and in bit 62 that parts of 128 bytes are in another order. Bits 16 and up are for
// wider matrices.
__device__ inline unsigned long long described(shared_at at) {
	return (unsigned long long)(at >> 4) | 1ull << 16 | 64ull << 32 | 1ull << 62;
}

#define FOUR_OF(c, i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3])
#define ALL_OF(c) \
	FOUR_OF(c, 0), FOUR_OF(c, 4), FOUR_OF(c, 8), FOUR_OF(c, 12), FOUR_OF(c, 16), FOUR_OF(c, 20), FOUR_OF(c, 24), \
		FOUR_OF(c, 28)
#define PRODUCT \
	"wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 " \
	"{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
	"%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
// start_step begins c = a b, or c += a b, of 64x16 and 16x64 elements. A row of an operand in memory has the elements
// of one row of a, or of one column of b. It is the other way round if the operand is turned.
template <int A_TURNED, int B_TURNED>
__device__ inline void start_step(float (&c)[32], unsigned long long a, unsigned long long b, bool add) {
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %34, 0;\n" PRODUCT "%32, %33, p, 1, 1, %35, %36;\n}"
		: ALL_OF(c)
		: "l"(a), "l"(b), "r"((int)add), "n"(A_TURNED), "n"(B_TURNED));
}
template <int B_TURNED>
__device__ inline void start_step(float (&c)[32], const unsigned *a, unsigned long long b, bool add) {
	asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %37, 0;\n" PRODUCT "{%32, %33, %34, %35}, %36, p, 1, 1, %38;\n}"
				 : ALL_OF(c) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"((int)add), "n"(B_TURNED));
}
#undef FOUR_OF
#undef ALL_OF
#undef PRODUCT
#endif

// A tile has 64 rows of 64 elements, ROW_BYTES each.
constexpr int ROW_BYTES = 128, TILE_BYTES = 64 * ROW_BYTES;

// part_of is where a part of a row is in a tile, in bytes.
__device__ constexpr int part_of(int row, int part) { return row * ROW_BYTES + ((part ^ row) & 7) * 16; }

// start_rows begins c = a b', where both are tiles.
__device__ inline void start_rows(float (&c)[32], shared_at a, shared_at b) {
#pragma unroll
	for (int k = 0; k < 4; k++) start_step<0, 0>(c, described(a + k * 32), described(b + k * 32), k > 0);
}
// start_sum begins c += a b, where a is in registers.
__device__ inline void start_sum(float (&c)[32], const unsigned (&a)[16], shared_at b) {
#pragma unroll
	for (int k = 0; k < 4; k++) start_step<1>(c, a + 4 * k, described(b + k * 16 * ROW_BYTES), true);
}
// start_turned begins c = a' b, or c += a' b.
__device__ inline void start_turned(float (&c)[32], shared_at a, shared_at b, bool add) {
#pragma unroll
	for (int k = 0; k < 4; k++)
		start_step<1, 1>(c, described(a + k * 16 * ROW_BYTES), described(b + k * 16 * ROW_BYTES), add || k > 0);
}

// Sums and left operands of a product: a thread has the rows g = lane / 4 and g + 8 of the warp's 16, and of each eight
// columns the two from 2 * (lane % 4).

// pair_up rounds sums times scale to a left operand.
__device__ inline void pair_up(unsigned (&a)[16], const float (&c)[32], float scale) {
#pragma unroll
	for (int i = 0; i < 16; i++) a[i] = pair_of(c[2 * i] * scale, c[2 * i + 1] * scale);
}
// store_rows writes a warp's rows of a left operand. The first one is at a multiple of eight rows.
__device__ inline void store_rows(shared_at to, const unsigned (&a)[16]) {
	const int row = threadIdx.x % 16, upper = threadIdx.x % 32 / 16;
#pragma unroll
	for (int k = 0; k < 4; k++) store_matrices(to + part_of(row, 2 * k + upper), a + 4 * k);
}

// store_16_rows writes a warp's rows of a left operand to the GPU's memory, of which so many are left. room is shared
// memory for them that no other warp uses.
__device__ inline void store_16_rows(bf16 *to, int step, int left, const unsigned (&a)[16], shared_at room) {
	const int lane = threadIdx.x % 32;
	store_rows(room, a);
	__syncwarp();
#pragma unroll
	for (int i = 0; i < 4; i++) {
		const int row = i * 4 + lane / 8;
		const vec<unsigned, 4> part = read_16(room + part_of(row, lane % 8));
		if (row < left) *(vec<unsigned, 4> *)(to + row * step + lane % 8 * 8) = part;
	}
	__syncwarp();
}

// put_sums writes sums to memory, in parts that are so many bytes apart, and read_sums reads them, or adds them if ADD.
__device__ inline void put_sums(shared_at to, int step, const float (&c)[32]) {
#pragma unroll
	for (int i = 0; i < 8; i++) {
		vec<unsigned, 4> part;
#pragma unroll
		for (int j = 0; j < 4; j++) part.at[j] = __float_as_int(c[4 * i + j]);
		write_16(to + i * step, part);
	}
}
template <bool ADD> __device__ inline void read_sums(float (&c)[32], shared_at from, int step) {
#pragma unroll
	for (int i = 0; i < 8; i++) {
		const vec<unsigned, 4> part = read_16(from + i * step);
#pragma unroll
		for (int j = 0; j < 4; j++) {
			const float x = __int_as_float(part.at[j]);
			c[4 * i + j] = ADD ? c[4 * i + j] + x : x;
		}
	}
}
