#include <stdbool.h>
#include <stdlib.h>

#include "plan.h"

// Of cublasLt.h, CUDA 13.
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8, DESC_AUX_POINTER = 11, DESC_AUX_STRIDE = 12 };
enum { EPILOGUE_NONE = 1, EPILOGUE_BIAS = 4, EPILOGUE_GELU_BIAS = 36, EPILOGUE_GELU_AUX_BIAS = 164 };
enum { R_32F = 0, ALLOC_FAILED = 3, INVALID_VALUE = 7 };

void lt_forget(void *plan) {
	lt_plan *p = plan;
	if (!p) return;
	if (p->descriptor) p->library->MatmulDescDestroy(p->descriptor);
	void *layouts[] = {p->a, p->b, p->c};
	for (int i = 0; i < 3; i++)
		if (layouts[i]) p->library->MatrixLayoutDestroy(layouts[i]);
	free(p);
}

uint32_t lt_alignment(const void *p) {
	uint32_t n = 256;
	while ((uintptr_t)p % n) n /= 2;
	return n;
}

static int set(lt_plan *p, int attribute, const void *value, size_t size) {
	return p->library->MatmulDescSetAttribute(p->descriptor, attribute, value, size);
}

// point tells the descriptor where the bias and the sum are.
static int point(lt_plan *p, const void *const addresses[]) {
	int status = addresses[BIAS] ? set(p, DESC_BIAS_POINTER, &addresses[BIAS], sizeof addresses[BIAS]) : 0;
	if (!status && addresses[SUM]) status = set(p, DESC_AUX_POINTER, &addresses[SUM], sizeof addresses[SUM]);
	return status;
}

// describe makes the descriptors of a plan.
static int describe(lt_plan *p) {
	const lt_form *f = &p->form;
	const int64_t stride = f->m;
	int status = p->library->MatmulDescCreate(&p->descriptor, f->compute, R_32F);
	if (!status) status = set(p, DESC_TRANSA, &f->transa, sizeof f->transa);
	if (!status) status = set(p, DESC_TRANSB, &f->transb, sizeof f->transb);
	if (!status) status = set(p, DESC_EPILOGUE, &f->epilogue, sizeof f->epilogue);
	if (!status && f->epilogue == EPILOGUE_GELU_AUX_BIAS) status = set(p, DESC_AUX_STRIDE, &stride, sizeof stride);
	if (!status) status = p->library->MatrixLayoutCreate(&p->a, f->type, f->transa ? f->k : f->m, f->transa ? f->m : f->k, f->lda);
	if (!status) status = p->library->MatrixLayoutCreate(&p->b, f->type, f->transb ? f->n : f->k, f->transb ? f->k : f->n, f->ldb);
	if (!status) status = p->library->MatrixLayoutCreate(&p->c, f->type, f->m, f->n, f->m);
	return status;
}

static int epilogue(bool bias, bool gelu, bool sum) {
	if (!bias) return EPILOGUE_NONE;
	return gelu ? sum ? EPILOGUE_GELU_AUX_BIAS : EPILOGUE_GELU_BIAS : EPILOGUE_BIAS;
}

// new_plan returns a plan without an algorithm, or NULL.
static lt_plan *new_plan(const lt_library *l, int transa, int transb, int m, int n, int k, int lda, int ldb, int epilogue, bool residual, int type,
                         int compute, size_t workspace_size) {
	lt_plan *p = calloc(1, sizeof *p);
	if (!p) return NULL;
	p->library = l;
	lt_form *f = &p->form;
	f->transa = transa, f->transb = transb, f->m = m, f->n = n, f->k = k, f->lda = lda, f->ldb = ldb;
	f->epilogue = epilogue, f->residual = residual, f->type = type, f->compute = compute, f->workspace_size = workspace_size;
	return p;
}

int lt_check(const lt_handle *h, int transa, int transb, int m, int n, int k, int lda, int ldb, int bias, int residual, int gelu, int sum, int type,
             int compute, size_t workspace_size) {
	void *const multiple = (void *)256;
	const void *const aligned[ADDRESSES] = {multiple, multiple, multiple, residual ? multiple : NULL, bias ? multiple : NULL, sum ? multiple : NULL};
	lt_plan *p = new_plan(h->library, transa, transb, m, n, k, lda, ldb, epilogue(bias, gelu, sum), residual, type, compute, workspace_size);
	if (!p) return ALLOC_FAILED;
	int status = describe(p);
	if (!status) status = point(p, aligned);
	if (!status) status = lt_first(h, p, aligned);
	lt_forget(p);
	return status;
}

int lt_run(const lt_handle *h, const lt_plan *p, const void *const addresses[], const uint64_t *algorithm, void *workspace, void *stream) {
	const float one = 1, beta = p->form.residual;
	const void *a = addresses[0], *b = addresses[1];
	void *d = (void *)addresses[2];
	const void *c = p->form.residual ? addresses[RESIDUAL] : d;
	return h->library->Matmul(h->handle, p->descriptor, &one, a, p->a, b, p->b, &beta, c, p->c, d, p->c, algorithm, workspace,
	                          p->form.workspace_size, stream);
}

int lt_linear(lt_handle *h, void **plan, int transa, int transb, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
              const void *bias, const void *residual, int gelu, void *sum, void *c, int type, int compute, void *workspace,
              size_t workspace_size, void *stream) {
	const void *const addresses[ADDRESSES] = {a, b, c, residual, bias, sum};
	if (residual && (gelu || residual == c)) return INVALID_VALUE;
	lt_plan *p = *plan;
	int status = 0;
	bool chosen = p != NULL;
	if (!p) {
		p = *plan = new_plan(h->library, transa, transb, m, n, k, lda, ldb, epilogue(bias, gelu, sum), residual != NULL, type, compute, workspace_size);
		if (!p) return ALLOC_FAILED;
		status = describe(p);
	}
	for (int i = 0; i < ADDRESSES; i++) chosen = chosen && lt_alignment(addresses[i]) >= p->form.alignment[i];
	if (!status) status = point(p, addresses);
	if (!status && !chosen) status = lt_choose(h, p, addresses, workspace, stream);
	if (!status) status = lt_run(h, p, addresses, p->algorithm, workspace, stream);
	if (status) {
		lt_forget(p);
		*plan = NULL;
	}
	return status;
}
