// A cuBLAS and a cuBLASLt for the cards of card.h: the CPU computes on their memory, which is the host's.
#include "../../../ortgraphs/ort/orttest/multiply.h"

#include <time.h>

int cublasCreate_v2(void **handle) { return (*handle = calloc(1, sizeof(multiply_handle))) ? 0 : 3; }
int cublasDestroy_v2(void *handle) {
	free(handle);
	return 0;
}
int cublasSetStream_v2(void *handle, void *stream) { return multiply_set_stream(handle, stream); }
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size) { return multiply_set_workspace(handle, workspace, size); }
int cublasGemmBatchedEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *const a[], int atype, int lda,
                        const void *const b[], int btype, int ldb, const void *beta, void *const c[], int ctype, int ldc, int count, int compute,
                        int algorithm) {
	return multiply_batched(handle, transa, transb, m, n, k, alpha, a, atype, lda, b, btype, ldb, beta, c, ctype, ldc, count, compute, algorithm);
}

// Descriptors have the attributes that are set, by their numbers in cublasLt.h.
enum { TRANSA = 3, TRANSB = 4, EPILOGUE = 7, BIAS_POINTER = 8, AUX_POINTER = 11, AUX_STRIDE = 12, ATTRIBUTES = 32 };
enum { NONE = 1, BIAS = 4, GELU = 32, AUX = 128 };
typedef struct {
	int compute;
	uint64_t attributes[ATTRIBUTES];
} descriptor;
typedef struct {
	int type;
	uint64_t rows, columns;
	int64_t stride;
} layout;

static int set_attribute(descriptor *d, int attribute, const void *value, size_t size) {
	if (attribute < 0 || attribute >= ATTRIBUTES || size > sizeof *d->attributes) return MULTIPLY_INVALID;
	memcpy(&d->attributes[attribute], value, size);
	return 0;
}

int cublasLtMatmulDescCreate(void **d, int compute, int scale) {
	if (!(*d = calloc(1, sizeof(descriptor)))) return 3;
	((descriptor *)*d)->compute = compute;
	return scale == MULTIPLY_F32 ? 0 : MULTIPLY_INVALID;
}
int cublasLtMatmulDescSetAttribute(void *d, int attribute, const void *value, size_t size) { return set_attribute(d, attribute, value, size); }
int cublasLtMatrixLayoutCreate(void **l, int type, uint64_t rows, uint64_t columns, int64_t stride) {
	if (!(*l = calloc(1, sizeof(layout)))) return 3;
	*(layout *)*l = (layout){type, rows, columns, stride};
	return 0;
}
int cublasLtMatmulPreferenceCreate(void **p) { return (*p = calloc(1, sizeof(descriptor))) ? 0 : 3; }
int cublasLtMatmulPreferenceSetAttribute(void *p, int attribute, const void *value, size_t size) { return set_attribute(p, attribute, value, size); }
static int destroy(void *p) {
	free(p);
	return 0;
}
int cublasLtMatmulDescDestroy(void *d) { return destroy(d); }
int cublasLtMatrixLayoutDestroy(void *l) { return destroy(l); }
int cublasLtMatmulPreferenceDestroy(void *p) { return destroy(p); }

// The algorithms have the numbers 1 and 2. The first one is slow for results of SLOW rows and fails for those of FIRST_FAILS rows, the second one
// fails for those of FAILS rows.
enum { ALGORITHMS = 2, HEURISTIC = 12, SLOW = 5, FAILS = 6, FIRST_FAILS = 8 }; // HEURISTIC is the size of a result, in numbers of 64 bits
int cublasLtFakeRuns[ALGORITHMS + 1];

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *d, void *a, void *b, void *c, void *e, void *preference, int requested, uint64_t *results,
                                   int *returned) {
	if (!handle || requested < 1) return MULTIPLY_INVALID;
	const layout *lc = c;
	*returned = requested < ALGORITHMS ? requested : ALGORITHMS;
	for (int i = 0; i < *returned; i++) memset(&results[i * HEURISTIC], 0, HEURISTIC * sizeof *results), results[i * HEURISTIC] = i + 1;
	return multiply_check(handle, 0, 0, lc->rows, lc->columns, 0, 0, 0, 0, 0, 0, 0, lc->type, 0, 0);
}

int cublasLtMatmul(void *handle, const descriptor *d, const float *alpha, const void *a, const layout *la, const void *b, const layout *lb,
                   const float *beta, const void *c, const layout *lc, void *to, const layout *ld, const uint64_t *algorithm, void *workspace,
                   size_t size, void *stream) {
	const int transa = d->attributes[TRANSA] != 0, transb = d->attributes[TRANSB] != 0;
	const uint64_t inner = transa ? la->rows : la->columns;
	const uint64_t epilogue = d->attributes[EPILOGUE];
	if (*algorithm < 1 || *algorithm > ALGORITHMS || *alpha != 1 || *beta != (c != to) || lc != ld || !(epilogue == NONE || epilogue & BIAS))
		return MULTIPLY_INVALID;
	if (lc->rows == (*algorithm == 1 ? FIRST_FAILS : FAILS)) return MULTIPLY_INVALID;
	if (*algorithm == 1 && lc->rows == SLOW) nanosleep(&(struct timespec){0, 500000}, NULL);
	cublasLtFakeRuns[*algorithm]++;
	if (la->type != lb->type || la->type != lc->type || lc->stride != (int64_t)lc->rows) return MULTIPLY_INVALID;
	if ((transa ? la->columns : la->rows) != lc->rows || (transb ? lb->rows : lb->columns) != lc->columns || (transb ? lb->columns : lb->rows) != inner)
		return MULTIPLY_INVALID;
	void *plan = NULL, *aux = epilogue & AUX ? (void *)(uintptr_t)d->attributes[AUX_POINTER] : NULL;
	if (aux && d->attributes[AUX_STRIDE] != lc->rows) return MULTIPLY_INVALID;
	int status = multiply_linear(handle, &plan, transa, transb, lc->rows, lc->columns, inner, a, la->stride, b, lb->stride,
	                             epilogue & BIAS ? (const void *)(uintptr_t)d->attributes[BIAS_POINTER] : NULL, *beta ? c : NULL, (epilogue & GELU) != 0, aux, to, lc->type, d->compute, workspace, size, stream);
	multiply_forget(plan);
	return status;
}
