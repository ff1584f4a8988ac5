// Gradients of the weights of convolutions of few channels. For each tap, the gradient is a product of matrices: y',
// whose rows are the results, times the positions of x that the tap reads. A block goes down strips of y, with as many
// rows of y in shared memory as the kernel has, and the row of x that all of them read. It keeps all sums in registers.
// FORM has the sizes.
template <class FORM> struct narrow : FORM {
	static __device__ constexpr int squares(int n) { return (n + 15) / 16; }
	// Each tap has M x N squares of 16 x 16 sums. A warp has N of them.
	static constexpr int M = squares(FORM::RESULTS), N = squares(FORM::CHANNELS),
						 TAPS = FORM::KERNEL_ROWS * FORM::KERNEL_COLUMNS;
	// Positions are an odd number of 16 bytes apart: so eight of them are in different banks.
	static constexpr int X_PITCH = N * 32 + 16, Y_PITCH = M * 32 + 16;
	static constexpr int READ_COLUMNS = FORM::STRIP_COLUMNS + (FORM::KERNEL_COLUMNS - 1) * FORM::DILATION;
	static constexpr int X_ROW = READ_COLUMNS * X_PITCH, SLOT = X_ROW + FORM::STRIP_COLUMNS * Y_PITCH,
						 SLOTS = FORM::KERNEL_ROWS + FORM::AHEAD;
	static constexpr int DOWN = FORM::STRIP_COLUMNS / 16, THREADS = DOWN * M * 32;
	static constexpr int STRIPS_DOWN = (FORM::Y_ROWS + FORM::STRIP_ROWS - 1) / FORM::STRIP_ROWS;
	static constexpr int STRIPS_ACROSS = (FORM::Y_COLUMNS + FORM::STRIP_COLUMNS - 1) / FORM::STRIP_COLUMNS;
	static constexpr int STRIPS = FORM::BATCH * STRIPS_DOWN * STRIPS_ACROSS;
	// STEPS is the number of rows of x that a strip reads.
	static constexpr int STEPS = FORM::STRIP_ROWS + FORM::KERNEL_ROWS - 1;
	// Rows of sums in shared memory are so many numbers apart.
	static constexpr int WIDE = N * 16 + FORM::SUMS_APART;
	typedef float sums[TAPS][2 * N][4];
};

// row_loader loads rows of COLUMNS positions of WIDTH channels to slots of shared memory, with a few instructions for
// each: a thread copies 16 bytes of the same columns of each row. Positions outside are zeros, and so are channels that
// are filled up.
template <int COLUMNS, int WIDTH, int ALL_COLUMNS, int ALL_ROWS, int PITCH, int THREADS> struct row_loader {
	static constexpr int PARTS = PITCH / 16 - 1, AT_ONCE = THREADS / PARTS, COPIES = (COLUMNS + AT_ONCE - 1) / AT_ONCE;
	const bf16 *from; // of the part of the first position of the next row
	int row, column;

	// begin sets the first row and column, of one of the batch.
	__device__ void begin(const bf16 *all, int one, int first_row, int first_column) {
		row = first_row;
		column = first_column + threadIdx.x / PARTS;
		from = all + ((one * ALL_ROWS + row) * ALL_COLUMNS + column) * WIDTH + threadIdx.x % PARTS * 8;
	}
	// load begins to load the next row, of zeros if it is not there.
	__device__ void load(shared_at slot, const bf16 *all, bool there) {
		const int position = threadIdx.x / PARTS, part = threadIdx.x % PARTS;
		there = there && row >= 0 && row < ALL_ROWS && part * 8 < WIDTH;
#pragma unroll
		for (int i = 0; i < COPIES; i++) {
			if ((i + 1) * AT_ONCE > COLUMNS && position + i * AT_ONCE >= COLUMNS) break;
			const bool one = there && (unsigned)(column + i * AT_ONCE) < ALL_COLUMNS;
			copy_16(slot + (position + i * AT_ONCE) * PITCH + part * 16, one ? from + i * AT_ONCE * WIDTH : all, one);
		}
		row++;
		from += ALL_COLUMNS * WIDTH;
	}
};

// add_step adds the products of a row of x with the rows of y whose taps read it: the one of the same step, and those
// of the steps before it, as far as the strip has them. The step's rows are in a slot.
template <class F>
__device__ inline void add_step(typename F::sums &sum, shared_at of_x, shared_at of_y, int step, int slot) {
	unsigned a[F::KERNEL_ROWS][4];
#pragma unroll
	for (int k = 0; k < F::KERNEL_ROWS; k++)
		load_transposed(a[k], of_y + (slot >= k ? slot - k : slot - k + F::SLOTS) * F::SLOT);
#pragma unroll
	for (int column = 0; column < F::KERNEL_COLUMNS; column++) {
#pragma unroll
		for (int n = 0; n < F::N; n++) {
			unsigned b[4];
			load_transposed(b, of_x + slot * F::SLOT + column * F::DILATION * F::X_PITCH + n * 32);
#pragma unroll
			for (int k = 0; k < F::KERNEL_ROWS; k++) {
				if (step < k) continue;
				multiply(sum[k * F::KERNEL_COLUMNS + column][2 * n], a[k], b);
				multiply(sum[k * F::KERNEL_COLUMNS + column][2 * n + 1], a[k], b + 2);
			}
		}
	}
}

// leave_narrow adds up the sums of the warps that have the same results, one after another, and leaves them in the
// order of the weights.
template <class F> __device__ inline void leave_narrow(float *partials, const typename F::sums &sum, shared_at memory) {
	const int warp = threadIdx.x / 32, g = threadIdx.x % 32 / 4, two = threadIdx.x % 4 * 2;
	float *const all = (float *)memory_at(memory);
	for (int turn = 0; turn < F::DOWN; turn++) {
		__syncthreads();
		if (warp / F::M != turn) continue;
#pragma unroll
		for (int tap = 0; tap < F::TAPS; tap++)
#pragma unroll
			for (int n = 0; n < 2 * F::N; n++)
#pragma unroll
				for (int half = 0; half < 2; half++) {
					const float *own = sum[tap][n] + half * 2;
					vec<float, 2> *to =
						(vec<float, 2> *)(all + ((tap * F::M + warp % F::M) * 16 + g + half * 8) * F::WIDE + n * 8 +
										  two);
					vec<float, 2> pair = turn > 0 ? *to : vec<float, 2>{0, 0};
					pair.at[0] += own[0];
					pair.at[1] += own[1];
					*to = pair;
				}
	}
	__syncthreads();
	for (int i = threadIdx.x; i < F::RESULTS * F::TAPS * F::CHANNELS; i += F::THREADS) {
		const int channel = i % F::CHANNELS, tap = i / F::CHANNELS % F::TAPS, result = i / (F::CHANNELS * F::TAPS);
		partials[blockIdx.x * F::RESULTS * F::TAPS * F::CHANNELS + i] =
			all[(tap * F::M * 16 + result) * F::WIDE + channel];
	}
}

// narrow_loader loads the rows of a block's strips, one strip after another.
template <class F> struct narrow_loader {
	row_loader<F::READ_COLUMNS, F::CHANNELS, F::X_COLUMNS, F::X_ROWS, F::X_PITCH, F::THREADS> of_x;
	row_loader<F::STRIP_COLUMNS, F::RESULTS, F::Y_COLUMNS, F::Y_ROWS, F::Y_PITCH, F::THREADS> of_y;
	int strip, step, slot;

	// load begins to load the rows of the next step, if there is one.
	__device__ void load(shared_at memory, const bf16 *x, const bf16 *y) {
		if (step == F::STEPS) {
			strip += gridDim.x;
			step = 0;
		}
		if (strip < F::STRIPS) {
			if (step == 0) {
				const int one = strip / (F::STRIPS_DOWN * F::STRIPS_ACROSS),
						  row = strip / F::STRIPS_ACROSS % F::STRIPS_DOWN * F::STRIP_ROWS;
				const int column = strip % F::STRIPS_ACROSS * F::STRIP_COLUMNS;
				of_x.begin(x, one, row - F::ROWS_BEFORE, column - F::COLUMNS_BEFORE);
				of_y.begin(y, one, row, column);
			}
			of_x.load(memory + slot * F::SLOT, x, true);
			of_y.load(memory + slot * F::SLOT + F::X_ROW, y, step < F::STRIP_ROWS);
			step++;
			slot = slot + 1 < F::SLOTS ? slot + 1 : 0;
		}
		end_copies();
	}
};

// add_narrow computes a block's sums.
template <class F> __device__ inline void add_narrow(const bf16 *x, const bf16 *y, float *partials) {
	const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, first = warp / F::M * 16;
	const shared_at memory = large_memory(), of_x = memory + (first + lane % 16) * F::X_PITCH + lane / 16 * 16;
	const shared_at of_y =
		memory + F::X_ROW + (first + lane / 16 * 8 + lane % 8) * F::Y_PITCH + lane / 8 % 2 * 16 + warp % F::M * 32;
	typename F::sums sum;
#pragma unroll
	for (int i = 0; i < F::TAPS * 2 * F::N * 4; i++) (&sum[0][0][0])[i] = 0;
	narrow_loader<F> loader;
	loader.strip = blockIdx.x;
	loader.step = loader.slot = 0;
	for (int i = 0; i < F::AHEAD; i++) loader.load(memory, x, y);
	int slot = 0;
	for (int strip = blockIdx.x; strip < F::STRIPS; strip += gridDim.x)
		for (int step = 0; step < F::STEPS; step++) {
			wait_for_copies<F::AHEAD - 1>();
			__syncthreads(); // and all warps have multiplied what the next rows take the place of
			loader.load(memory, x, y);
			add_step<F>(sum, of_x, of_y, step, slot);
			slot = slot + 1 < F::SLOTS ? slot + 1 : 0;
		}
	wait_for_copies<0>();
	leave_narrow<F>(partials, sum, memory);
}
