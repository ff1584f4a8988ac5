// Matrices of bf16 in shared memory, multiplied by a warp in tiles of 16x8x16 with sums in f32: the instructions, from
// compute capability 8.0 on.

#ifdef __CUDACC__
// shared_at is a place in shared memory. With addresses of 32 bits, the parts that are known at compile time need no
// instruction.
using shared_at = unsigned;
__device__ inline shared_at place_of(const void *p) {
	unsigned at;
	asm("{ .reg .u64 t; cvta.to.shared.u64 t, %1; cvt.u32.u64 %0, t; }" : "=r"(at) : "l"(p));
	return at;
}
// multiply adds the product of a (16x16) and b (16x8) to c.
__device__ inline void multiply(float *c, const unsigned *a, const unsigned *b) {
	asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
		"{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
		: "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
		: "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
// load_matrices loads four matrices of 8x8: the threads 8i to 8i+7 give the rows of matrix i.
__device__ inline void load_matrices(unsigned *r, shared_at row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
				 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}
__device__ inline void load_transposed(unsigned *r, shared_at row) {
	asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
				 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(row) : "memory");
}
// copy_16 begins to copy 16 bytes to shared memory, or zeros.
__device__ inline void copy_16(shared_at to, const void *from, bool there) {
	asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
__device__ inline void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// wait_for_copies waits for all copies but the last groups.
template <int GROUPS> __device__ inline void wait_for_copies() {
	asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
}

// large_memory is the shared memory that the launch asks for, from a multiple of 1,024.
__device__ inline shared_at large_memory() {
	extern __shared__ unsigned char memory[];
	return (place_of(memory) + 1023) / 1024 * 1024;
}
// memory_at is what is at a place in shared memory.
__device__ inline void *memory_at(shared_at at) {
	void *p;
	asm("{ .reg .u64 t; cvt.u64.u32 t, %1; cvta.shared.u64 %0, t; }" : "=l"(p) : "r"(at));
	return p;
}
#endif
