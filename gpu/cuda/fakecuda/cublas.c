// A cuBLAS for the cards of card.h: the CPU computes on their memory, which is the host's.
#include "../../../ortgraphs/ort/orttest/multiply.h"

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
