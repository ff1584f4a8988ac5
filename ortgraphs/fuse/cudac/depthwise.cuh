// Depthwise convolutions and the gradients of their weights. A thread has V neighbouring channels, and positions that
// are the distance of two taps apart: so one tap needs the same numbers as the next, but for one, and these stay in
// registers.

__device__ inline void take(const bf16 *p, float (&x)[2]) {
	const unsigned pair = *(const unsigned *)p;
	x[0] = low_of(pair);
	x[1] = high_of(pair);
}
__device__ inline void take(const float *p, float (&x)[2]) {
	const vec<float, 2> pair = *(const vec<float, 2> *)p;
	x[0] = pair.at[0];
	x[1] = pair.at[1];
}
template <class T> __device__ inline void take(const T *p, float (&x)[1]) { x[0] = *p; }

// take_within is 0 at positions that a line of SIZE, CHANNELS apart, does not have.
template <int SIZE, int CHANNELS, int V, class T>
__device__ inline void take_within(const T *line, int position, float (&x)[V]) {
#pragma unroll
	for (int v = 0; v < V; v++) x[v] = 0;
	if ((unsigned)position < SIZE) take(line + position * CHANNELS, x);
}

// add_taps adds those of a line to sums of RUN positions. The first tap of the first sum is at a position of the line.
// weights has rows of WIDTH.
template <int TAPS, int DISTANCE, int SIZE, int CHANNELS, int WIDTH, int RUN, int V, class T>
__device__ inline void add_taps(float (&sum)[RUN][V], const T *line, int position, const float *weights) {
	float window[RUN][V];
#pragma unroll
	for (int i = 0; i + 1 < RUN; i++) take_within<SIZE, CHANNELS>(line, position + i * DISTANCE, window[i]);
#pragma unroll
	for (int k = 0; k < TAPS; k++) {
		take_within<SIZE, CHANNELS>(line, position + (k + RUN - 1) * DISTANCE, window[(k + RUN - 1) % RUN]);
		const vec<float, V> w = *(const vec<float, V> *)(weights + k * WIDTH);
#pragma unroll
		for (int i = 0; i < RUN; i++)
#pragma unroll
			for (int v = 0; v < V; v++) sum[i][v] += window[(i + k) % RUN][v] * w.at[v];
	}
}

// add_products adds to the sums of TAPS the products of y at so many positions from y_position on, with x.
template <int DISTANCE, int X_SIZE, int Y_SIZE, int CHANNELS, int TAPS, int V, class X, class Y>
__device__ inline void add_products(
	float (&sum)[TAPS][V], const X *x, const Y *y, int x_position, int y_position, int count) {
	float window[TAPS][V];
#pragma unroll
	for (int k = 0; k + 1 < TAPS; k++) take_within<X_SIZE, CHANNELS>(x, x_position + k * DISTANCE, window[k]);
	for (int i = 0; i < count; i += TAPS) {
#pragma unroll
		for (int j = 0; j < TAPS; j++) {
			take_within<X_SIZE, CHANNELS>(x, x_position + (i + j + TAPS - 1) * DISTANCE, window[(j + TAPS - 1) % TAPS]);
			float one[V];
			take_within<Y_SIZE, CHANNELS>(y, i + j < count ? y_position + (i + j) * DISTANCE : -1, one);
#pragma unroll
			for (int k = 0; k < TAPS; k++)
#pragma unroll
				for (int v = 0; v < V; v++) sum[k][v] += window[(j + k) % TAPS][v] * one[v];
		}
	}
}
