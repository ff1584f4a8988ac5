// The second step of column sums: the kernels of regions have left sums of some rows each, and one launch adds up those
// of many regions. Both add in a fixed order, so the bits are the same in every run.

// pointers are all pointers of a call. The first is the table: so many jobs, then for each job the fields below.
struct pointers {
	void *at[256];
};
enum { FIRST_BLOCK, PARTIALS, FIRST_PARTIAL, BLOCKS, COLUMNS, OP, RESULT, SHORT, FIELDS };

// A block completes the sums of 32 threads' columns: VECTOR each where rows of partial sums are aligned for it.
template <int VECTOR>
__device__ inline void complete(const long long *job, const pointers &p, int first, float (*all)[32 * 4 + 1]) {
	const float *partials = (const float *)p.at[job[PARTIALS]] + job[FIRST_PARTIAL];
	const int across = threadIdx.x % 32, down = threadIdx.x / 32, columns = job[COLUMNS], blocks = job[BLOCKS],
			  op = job[OP];
	const int column = first + across * VECTOR;
	float x[VECTOR];
#pragma unroll
	for (int j = 0; j < VECTOR; j++) x[j] = op == 0 ? 0 : op == 1 ? -INFINITY : INFINITY;
	if (column < columns) {
#pragma unroll 8
		for (int i = down; i < blocks; i += 32) {
			const vec<float, VECTOR> y = *(const vec<float, VECTOR> *)(partials + (long long)i * columns + column);
#pragma unroll
			for (int j = 0; j < VECTOR; j++)
				x[j] = op == 0 ? x[j] + y.at[j] : op == 1 ? max_of(x[j], y.at[j]) : min_of(x[j], y.at[j]);
		}
	}
#pragma unroll
	for (int j = 0; j < VECTOR; j++) all[down][across * VECTOR + j] = x[j];
	__syncthreads();
#pragma unroll
	for (int j = 0; j < VECTOR; j++) {
		const int own = down * VECTOR + j;
		float y = all[across][own];
		y = op == 0 ? group_sum<32>(y) : op == 1 ? group_max<32>(y) : group_min<32>(y);
		if (across != 0 || first + own >= columns) continue;
		if (job[SHORT]) ((bf16 *)p.at[job[RESULT]])[first + own] = y;
		else ((float *)p.at[job[RESULT]])[first + own] = y;
	}
}

extern "C" __global__ void __launch_bounds__(1024) sums(const pointers p) {
	__shared__ float all[32][32 * 4 + 1];
	__shared__ int found;
	const long long *table = (const long long *)p.at[0], *jobs = table + 1;
	for (int i = threadIdx.x; i < table[0]; i += 1024)
		if (jobs[i * FIELDS + FIRST_BLOCK] <= blockIdx.x &&
			(i + 1 == table[0] || blockIdx.x < jobs[(i + 1) * FIELDS + FIRST_BLOCK]))
			found = i;
	__syncthreads();
	const long long *job = jobs + found * FIELDS;
	const int block = blockIdx.x - (int)job[FIRST_BLOCK];
	if ((job[COLUMNS] | job[FIRST_PARTIAL]) % 4 == 0) complete<4>(job, p, block * 32 * 4, all);
	else complete<1>(job, p, block * 32, all);
}
