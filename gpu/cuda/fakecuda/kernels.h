// The kernels of this repository, for a GPU that is none: name by name what host/train/kernels has, on the CPU.
#include <math.h>
#include <string.h>

typedef void (*kernel)(void **arguments);

#define ARGUMENT(type, i) (*(type *)arguments[i])

// Without joined products and sums, as the kernel is compiled: scripts/cuda-stub.sh says -ffp-contract=off.
static void adamw(void **arguments) {
	float *param = ARGUMENT(float *, 0), *grad = ARGUMENT(float *, 1), *exp_avg = ARGUMENT(float *, 2), *exp_avg_sq = ARGUMENT(float *, 3);
	long long n = ARGUMENT(long long, 4);
	float grad_norm = *ARGUMENT(float *, 5), grad_scale = *ARGUMENT(float *, 6);
	double max_norm = ARGUMENT(double, 8);
	float rest1 = ARGUMENT(float, 9), decay2 = ARGUMENT(float, 10), rest2 = ARGUMENT(float, 11), root2 = ARGUMENT(float, 12);
	float eps = ARGUMENT(float, 13), step_size = ARGUMENT(float, 14), keep = ARGUMENT(float, 15);
	if (!*ARGUMENT(unsigned char *, 7)) return;
	float scale = grad_scale * (max_norm > 0 ? fmin(max_norm / (grad_norm + 1e-6), 1.0) : 1.0);
	for (long long i = 0; i < n; i++) {
		float g = grad[i] * scale;
		exp_avg[i] = exp_avg[i] + (g - exp_avg[i]) * rest1;
		exp_avg_sq[i] = exp_avg_sq[i] * decay2 + g * g * rest2;
		param[i] = param[i] * keep - exp_avg[i] / (sqrtf(exp_avg_sq[i]) / root2 + eps) * step_size;
	}
}

static kernel named_kernel(const char *name) { return strcmp(name, "adamw") ? NULL : adamw; }
