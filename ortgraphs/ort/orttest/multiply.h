// What a program uses of cuBLAS, on the CPU: products of matrices in columns, of f32 or bf16. The fake driver has it, too.
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MULTIPLY_F32 = 0, MULTIPLY_BF16 = 14, MULTIPLY_INVALID = 7 };

// A handle remembers what it was given: cuBLAS needs memory of its own unless it has a workspace.
typedef struct {
	void *stream, *workspace;
	size_t size;
} multiply_handle;

static int multiply_set_stream(void *handle, void *stream) {
	*(multiply_handle *)handle = (multiply_handle){stream, NULL, 0};
	return 0;
}

static int multiply_set_workspace(void *handle, void *workspace, size_t size) {
	multiply_handle *h = handle;
	if (!workspace || (uintptr_t)workspace % 64) return MULTIPLY_INVALID;
	h->workspace = workspace, h->size = size;
	return 0;
}

static float multiply_load(const void *p, size_t i, int type) {
	if (type == MULTIPLY_F32) return ((const float *)p)[i];
	uint32_t bits = (uint32_t)((const uint16_t *)p)[i] << 16;
	float x;
	memcpy(&x, &bits, sizeof x);
	return x;
}

static void multiply_store(void *p, size_t i, int type, float x) {
	if (type == MULTIPLY_F32) {
		((float *)p)[i] = x;
		return;
	}
	uint32_t bits;
	memcpy(&bits, &x, sizeof bits);
	((uint16_t *)p)[i] = (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static int multiply_batched(void *handle, int transa, int transb, int m, int n, int k, const float *alpha, const void *const a[], int atype,
                            int lda, const void *const b[], int btype, int ldb, const float *beta, void *const c[], int ctype, int ldc,
                            int count, int compute, int algorithm) {
	const multiply_handle *h = handle;
	if (!h->workspace || atype != btype || atype != ctype || (atype != MULTIPLY_F32 && atype != MULTIPLY_BF16) || *alpha != 1 || *beta != 0)
		return MULTIPLY_INVALID;
	if (lda < (transa ? k : m) || ldb < (transb ? n : k) || ldc < m) return MULTIPLY_INVALID;
	for (int p = 0; p < count; p++)
		for (int j = 0; j < n; j++)
			for (int i = 0; i < m; i++) {
				double sum = 0;
				for (int l = 0; l < k; l++)
					sum += (double)multiply_load(a[p], transa ? l + (size_t)i * lda : i + (size_t)l * lda, atype) *
					       multiply_load(b[p], transb ? j + (size_t)l * ldb : l + (size_t)j * ldb, btype);
				multiply_store(c[p], i + (size_t)j * ldc, ctype, (float)sum);
			}
	return 0;
}

// multiply_linear is a planned product, with a bias or NULL, and with a residual or NULL. It has a plan, which multiply_forget frees.
static int multiply_linear(void *handle, void **plan, int transa, int transb, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
                           const void *bias, const void *residual, int gelu, void *sum_out, void *c, int type, int compute, void *workspace,
                           size_t size, void *stream) {
	if (!workspace || !size || (uintptr_t)workspace % 64 || lda < (transa ? k : m) || ldb < (transb ? n : k)) return MULTIPLY_INVALID;
	if ((type != MULTIPLY_F32 && type != MULTIPLY_BF16) || (gelu && residual)) return MULTIPLY_INVALID;
	if (!*plan) *plan = malloc(1);
	for (int j = 0; j < n; j++)
		for (int i = 0; i < m; i++) {
			double sum = (bias ? multiply_load(bias, i, type) : 0) + (residual ? multiply_load(residual, i + (size_t)j * m, type) : 0);
			for (int l = 0; l < k; l++)
				sum += (double)multiply_load(a, transa ? l + (size_t)i * lda : i + (size_t)l * lda, type) *
				       multiply_load(b, transb ? j + (size_t)l * ldb : l + (size_t)j * ldb, type);
			if (sum_out) multiply_store(sum_out, i + (size_t)j * m, type, (float)sum);
			if (gelu) sum *= 0.5 + 0.5 * tanh(0.7978845608028654 * (sum + 0.044715 * sum * sum * sum));
			multiply_store(c, i + (size_t)j * m, type, (float)sum);
		}
	return 0;
}

// multiply_check refuses results of 7 columns.
static int multiply_check(void *handle, int transa, int transb, int m, int n, int k, int lda, int ldb, int bias, int residual, int gelu, int sum,
                          int type, int compute, size_t size) {
	return m == 7 ? 15 : 0;
}
static void multiply_forget(void *plan) { free(plan); }
