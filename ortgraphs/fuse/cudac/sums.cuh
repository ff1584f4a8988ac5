// The second step of column sums: the kernels of regions have left sums of some rows each, and one launch adds up those of many
// regions. Both add in a fixed order, so the bits are the same in every run.

// pointers are all pointers of a call. The first is the table: so many jobs, then for each job the fields below.
struct pointers {
	void *at[256];
};
enum { FIRST_BLOCK, PARTIALS, FIRST_PARTIAL, BLOCKS, COLUMNS, OP, RESULT, SHORT, FIELDS };

extern "C" __global__ void __launch_bounds__(1024) sums(const pointers p) {
	__shared__ float all[32][33];
	__shared__ int found;
	const long long *table = (const long long *)p.at[0], *jobs = table + 1;
	for (int i = threadIdx.x; i < table[0]; i += 1024)
		if (jobs[i * FIELDS + FIRST_BLOCK] <= blockIdx.x && (i + 1 == table[0] || blockIdx.x < jobs[(i + 1) * FIELDS + FIRST_BLOCK])) found = i;
	__syncthreads();
	const long long *job = jobs + found * FIELDS;
	const float *partials = (const float *)p.at[job[PARTIALS]] + job[FIRST_PARTIAL];
	const int across = threadIdx.x % 32, down = threadIdx.x / 32, columns = job[COLUMNS], blocks = job[BLOCKS], op = job[OP];
	const int first = (blockIdx.x - (int)job[FIRST_BLOCK]) * 32, column = first + across;
	float x = op == 0 ? 0 : op == 1 ? -INFINITY : INFINITY;
	if (column < columns)
		for (int i = down; i < blocks; i += 32) {
			const float y = partials[i * columns + column];
			x = op == 0 ? x + y : op == 1 ? max_of(x, y) : min_of(x, y);
		}
	all[down][across] = x;
	__syncthreads();
	x = all[across][down];
	x = op == 0 ? group_sum<32>(x) : op == 1 ? group_max<32>(x) : group_min<32>(x);
	if (across != 0 || first + down >= columns) return;
	if (job[SHORT]) ((bf16 *)p.at[job[RESULT]])[first + down] = x;
	else ((float *)p.at[job[RESULT]])[first + down] = x;
}
