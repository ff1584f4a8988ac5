// What a program uses of cuDNN, on the CPU: convolutions over two dimensions and their gradients, of f32 or bf16. See gpu/cudnn/convolve.h.
#include "multiply.h"

typedef struct {
	int64_t pass, type, batch, in, out, groups;
	int64_t size[2], result[2], kernel[2], stride[2], dilation[2], before[2], after[2];
} convolve_form;

enum { CONVOLVE_F32 = 0, CONVOLVE_BF16 = 9, CONVOLVE_PASSES = 3, CONVOLVE_INVALID = 2000, CONVOLVE_REFUSED = 3000 };

// CONVOLVE_LARGE is a handle that needs more memory than others.
enum { CONVOLVE_LARGE = 2 * CONVOLVE_PASSES + 1, CONVOLVE_WORKSPACE = (32 << 20) + 1 };

// convolve_check refuses the pass that is the number of the handle less 4.
static int convolve_check(void *handle, const convolve_form *f, size_t size) {
	if ((uintptr_t)handle == (uintptr_t)f->pass + CONVOLVE_PASSES + 1) return CONVOLVE_REFUSED;
	if ((uintptr_t)handle == CONVOLVE_LARGE && size < CONVOLVE_WORKSPACE) return CONVOLVE_REFUSED;
	return f->type != CONVOLVE_F32 && f->type != CONVOLVE_BF16 ? CONVOLVE_REFUSED : 0;
}

// convolve adds each term to the number that the pass says. A handle of 1 to 3 has a fault, in the pass that is its number less 1: results are 1 % too
// large, or, of the gradient of x, where nodes in bf16 round more often, the first tap is left out.
static int convolve(void *handle, const convolve_form *f, const void *first, const void *second, void *result, void *workspace, size_t size, void *stream) {
	if (!workspace || !size || convolve_check(handle, f, size)) return CONVOLVE_INVALID;
	const int type = f->type == CONVOLVE_F32 ? MULTIPLY_F32 : MULTIPLY_BF16;
	const int64_t in = f->in / f->groups, out = f->out / f->groups, fault = (int64_t)(uintptr_t)handle;
	const size_t count = f->pass == 0 ? f->batch * f->result[0] * f->result[1] * f->out
	                     : f->pass == 1 ? f->batch * f->size[0] * f->size[1] * f->in : f->out * f->kernel[0] * f->kernel[1] * in;
	double *sums = calloc(count, sizeof *sums);
	if (!sums) return CONVOLVE_INVALID;
	for (int64_t b = 0; b < f->batch; b++)
		for (int64_t p = 0; p < f->result[0]; p++)
			for (int64_t q = 0; q < f->result[1]; q++)
				for (int64_t u = 0; u < f->kernel[0]; u++)
					for (int64_t v = 0; v < f->kernel[1]; v++) {
						const int64_t r = p * f->stride[0] + u * f->dilation[0] - f->before[0], s = q * f->stride[1] + v * f->dilation[1] - f->before[1];
						if (r < 0 || s < 0 || r >= f->size[0] || s >= f->size[1]) continue;
						if (fault == 2 && f->pass == 1 && v == 0) continue;
						for (int64_t o = 0; o < f->out; o++)
							for (int64_t c = 0; c < in; c++) {
								const size_t x = ((b * f->size[0] + r) * f->size[1] + s) * f->in + o / out * in + c;
								const size_t y = ((b * f->result[0] + p) * f->result[1] + q) * f->out + o, w = ((o * f->kernel[0] + u) * f->kernel[1] + v) * in + c;
								const size_t to = f->pass == 0 ? y : f->pass == 1 ? x : w, a = f->pass == 1 ? y : x, e = f->pass == 2 ? y : w;
								sums[to] += (double)multiply_load(first, a, type) * multiply_load(second, e, type);
							}
					}
	for (size_t i = 0; i < count; i++) multiply_store(result, i, type, (float)(sums[i] * (fault == f->pass + 1 && fault != 2 ? 1.01 : 1)));
	free(sums);
	return 0;
}
