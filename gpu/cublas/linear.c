#define _GNU_SOURCE
#include "linear.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>

// Of cublasLt.h, CUDA 13.
enum { DESC_TRANSA = 3, DESC_TRANSB = 4, DESC_EPILOGUE = 7, DESC_BIAS_POINTER = 8, DESC_AUX_POINTER = 11, DESC_AUX_STRIDE = 12 };
enum { EPILOGUE_BIAS = 4, EPILOGUE_GELU_BIAS = 36, EPILOGUE_GELU_AUX_BIAS = 164 };
enum { PREFERENCE_WORKSPACE = 1, PREFERENCE_ALIGNMENT_A = 5 }; // those of B, C and D follow
enum { R_32F = 0, ALLOC_FAILED = 3, NOT_SUPPORTED = 15 };

typedef struct {
	uint64_t algorithm[8];
	size_t workspace;
	int state;
	float waves;
	int reserved[4];
} lt_heuristic;

// The addresses of A, B, C, the bias and the sum. cuBLASLt takes the alignment of the last two from the descriptor.
enum { ADDRESSES = 5, BIAS = 3, SUM = 4 };

typedef struct {
	const lt_library *library;
	void *descriptor, *a, *b, *c;
	uint64_t algorithm[8];
	uint32_t alignment[ADDRESSES]; // for which the algorithm was chosen
} lt_plan;

const char *lt_open(const char *name, lt_library *l, const char **lacks) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	if (!lib) return dlerror();
#define FIND(name) \
	if (!(*(void **)&l->name = dlsym(lib, "cublasLt" #name))) *lacks = "cublasLt" #name;
	FIND(MatmulDescCreate)
	FIND(MatmulDescDestroy)
	FIND(MatmulDescSetAttribute)
	FIND(MatrixLayoutCreate)
	FIND(MatrixLayoutDestroy)
	FIND(MatmulPreferenceCreate)
	FIND(MatmulPreferenceDestroy)
	FIND(MatmulPreferenceSetAttribute)
	FIND(MatmulAlgoGetHeuristic)
	FIND(Matmul)
	return NULL;
}

void lt_forget(void *plan) {
	lt_plan *p = plan;
	if (!p) return;
	if (p->descriptor) p->library->MatmulDescDestroy(p->descriptor);
	void *layouts[] = {p->a, p->b, p->c};
	for (int i = 0; i < 3; i++)
		if (layouts[i]) p->library->MatrixLayoutDestroy(layouts[i]);
	free(p);
}

// alignment of an address, up to the 256 bytes that cuBLASLt knows at most.
static uint32_t alignment(const void *p) {
	uint32_t n = 256;
	while ((uintptr_t)p % n) n /= 2;
	return n;
}

static int set(lt_plan *p, int attribute, const void *value, size_t size) {
	return p->library->MatmulDescSetAttribute(p->descriptor, attribute, value, size);
}

// point tells the descriptor where the bias and the sum are.
static int point(lt_plan *p, const void *const addresses[]) {
	int status = set(p, DESC_BIAS_POINTER, &addresses[BIAS], sizeof addresses[BIAS]);
	if (!status && addresses[SUM]) status = set(p, DESC_AUX_POINTER, &addresses[SUM], sizeof addresses[SUM]);
	return status;
}

// choose sets the algorithm of a plan: the first that cuBLASLt proposes for these addresses, to which the descriptor points, and for all others
// that a call has had.
static int choose(const lt_handle *h, lt_plan *p, const void *const addresses[], size_t workspace) {
	void *preference = NULL;
	lt_heuristic found = {0};
	int count = 0, status = p->library->MatmulPreferenceCreate(&preference);
	if (status) return status;
	status = p->library->MatmulPreferenceSetAttribute(preference, PREFERENCE_WORKSPACE, &workspace, sizeof workspace);
	for (int i = 0; i < ADDRESSES; i++) {
		const uint32_t now = alignment(addresses[i]);
		if (!p->alignment[i] || now < p->alignment[i]) p->alignment[i] = now;
	}
	const int of[] = {0, 1, 2, 2}; // C and D are one matrix
	for (int i = 0; i < 4 && !status; i++)
		status = p->library->MatmulPreferenceSetAttribute(preference, PREFERENCE_ALIGNMENT_A + i, &p->alignment[of[i]], sizeof *p->alignment);
	if (!status) status = p->library->MatmulAlgoGetHeuristic(h->handle, p->descriptor, p->a, p->b, p->c, p->c, preference, 1, &found, &count);
	p->library->MatmulPreferenceDestroy(preference);
	if (!status && (!count || found.state)) status = found.state ? found.state : NOT_SUPPORTED;
	for (int i = 0; i < 8; i++) p->algorithm[i] = found.algorithm[i];
	return status;
}

// describe fills a plan, apart from its algorithm.
static int describe(lt_plan *p, int transa, int transb, int m, int n, int k, int lda, int ldb, int epilogue, int type, int compute) {
	const int64_t stride = m;
	int status = p->library->MatmulDescCreate(&p->descriptor, compute, R_32F);
	if (!status) status = set(p, DESC_TRANSA, &transa, sizeof transa);
	if (!status) status = set(p, DESC_TRANSB, &transb, sizeof transb);
	if (!status) status = set(p, DESC_EPILOGUE, &epilogue, sizeof epilogue);
	if (!status && epilogue == EPILOGUE_GELU_AUX_BIAS) status = set(p, DESC_AUX_STRIDE, &stride, sizeof stride);
	if (!status) status = p->library->MatrixLayoutCreate(&p->a, type, transa ? k : m, transa ? m : k, lda);
	if (!status) status = p->library->MatrixLayoutCreate(&p->b, type, transb ? n : k, transb ? k : n, ldb);
	if (!status) status = p->library->MatrixLayoutCreate(&p->c, type, m, n, m);
	return status;
}

static int epilogue(int gelu, int sum) { return gelu ? sum ? EPILOGUE_GELU_AUX_BIAS : EPILOGUE_GELU_BIAS : EPILOGUE_BIAS; }

int lt_check(const lt_handle *h, int transa, int transb, int m, int n, int k, int lda, int ldb, int gelu, int sum, int type, int compute,
             size_t workspace_size) {
	lt_plan *p = calloc(1, sizeof *p);
	if (!p) return ALLOC_FAILED;
	p->library = h->library;
	void *const multiple = (void *)256;
	const void *const aligned[ADDRESSES] = {multiple, multiple, multiple, multiple, sum ? multiple : NULL};
	int status = describe(p, transa, transb, m, n, k, lda, ldb, epilogue(gelu, sum), type, compute);
	if (!status) status = point(p, aligned);
	if (!status) status = choose(h, p, aligned, workspace_size);
	lt_forget(p);
	return status;
}

int lt_linear(const lt_handle *h, void **plan, int transa, int transb, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
              const void *bias, int gelu, void *sum, void *c, int type, int compute, void *workspace, size_t workspace_size, void *stream) {
	const float one = 1, zero = 0;
	const void *const addresses[ADDRESSES] = {a, b, c, bias, sum};
	lt_plan *p = *plan;
	int status = 0;
	bool chosen = p != NULL;
	if (!p) {
		if (!(p = *plan = calloc(1, sizeof *p))) return ALLOC_FAILED;
		p->library = h->library;
		status = describe(p, transa, transb, m, n, k, lda, ldb, epilogue(gelu, sum != NULL), type, compute);
	}
	for (int i = 0; i < ADDRESSES; i++) chosen = chosen && alignment(addresses[i]) >= p->alignment[i];
	if (!status) status = point(p, addresses);
	if (!status && !chosen) status = choose(h, p, addresses, workspace_size);
	if (!status)
		status = h->library->Matmul(h->handle, p->descriptor, &one, a, p->a, b, p->b, &zero, c, p->c, c, p->c, p->algorithm, workspace, workspace_size, stream);
	if (status) {
		lt_forget(p);
		*plan = NULL;
	}
	return status;
}
