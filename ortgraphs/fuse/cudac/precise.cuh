// Steps repeat the errors of those before, one after another and all at once, so their functions are precise.
__device__ inline float precise_sigmoid(float x) { return 1.f / (1.f + expf(-x)); }
__device__ inline float precise_softplus(float x) { return fmaxf(x, 0.f) + log1pf(expf(-fabsf(x))); }
__device__ inline float precise_gelu(float x) { return 0.5f * x * erfcf(-0.7071067812f * x); }
__device__ inline float precise_gelu_tanh(float x) {
	return x * precise_sigmoid(1.595769122f * (x + 0.044715f * x * x * x));
}
// In f64 those of the prelude are.
__device__ inline double precise_sigmoid(double x) { return sigmoid_of(x); }
__device__ inline double precise_softplus(double x) { return softplus_of(x); }
__device__ inline double precise_gelu(double x) { return gelu_of(x); }
__device__ inline double precise_gelu_tanh(double x) { return gelu_tanh_of(x); }
#define sigmoid_of precise_sigmoid
#define tanh_of tanhf
#define softplus_of precise_softplus
#define gelu_of precise_gelu
#define gelu_tanh_of precise_gelu_tanh
