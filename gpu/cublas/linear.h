#pragma once
#include <stddef.h>
#include <stdint.h>

// lt_library has functions of cuBLASLt and, to measure, of the CUDA driver. Their types have opaque pointers in place of descriptors, events and
// streams, and int for enumerations.
typedef struct {
	int (*MatmulDescCreate)(void **descriptor, int compute, int scale);
	int (*MatmulDescDestroy)(void *descriptor);
	int (*MatmulDescSetAttribute)(void *descriptor, int attribute, const void *value, size_t size);
	int (*MatrixLayoutCreate)(void **layout, int type, uint64_t rows, uint64_t columns, int64_t stride);
	int (*MatrixLayoutDestroy)(void *layout);
	int (*MatmulPreferenceCreate)(void **preference);
	int (*MatmulPreferenceDestroy)(void *preference);
	int (*MatmulPreferenceSetAttribute)(void *preference, int attribute, const void *value, size_t size);
	int (*MatmulAlgoGetHeuristic)(void *handle, void *descriptor, void *a, void *b, void *c, void *d, void *preference, int requested,
	                              void *results, int *returned);
	int (*Matmul)(void *handle, void *descriptor, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout,
	              const void *beta, const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace,
	              size_t workspace_size, void *stream);
	int (*EventCreate)(void **event, unsigned flags);
	int (*EventRecord)(void *event, void *stream);
	int (*EventSynchronize)(void *event);
	int (*EventElapsedTime_v2)(float *milliseconds, void *begin, void *end);
	int (*EventDestroy_v2)(void *event);
	int (*StreamIsCapturing)(void *stream, int *status);
} lt_library;

typedef struct lt_choice lt_choice;

// lt_handle is the first argument of lt_linear. A cublasHandle_t is a cublasLtHandle_t, too.
typedef struct {
	const lt_library *library;
	void *handle;
	double measured;    // from so many multiplications on, a product gets the fastest algorithm, which may differ from run to run; 0: none does
	lt_choice *choices; // of the products so far
} lt_handle;

// lt_linear queues C = op(A) op(B) + bias + residual for matrices in columns, as cublasGemmEx has them: m x k, k x n and m x n, the residual as
// C, the bias of m elements, all of one type. The bias and the residual may be NULL. The residual is not C itself: to measure, C is computed
// several times. With gelu, C is GELU of the sum, by the formula with tanh, and sum, unless NULL, gets the matrix without it; cuBLASLt has no
// such product with a residual. The first call with a plan, which points to NULL, chooses the algorithm. To measure, it waits for the stream
// and computes the product with each algorithm that cuBLASLt proposes. lt_forget frees the plan.
int lt_linear(lt_handle *h, void **plan, int transa, int transb, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
              const void *bias, const void *residual, int gelu, void *sum, void *c, int type, int compute, void *workspace,
              size_t workspace_size, void *stream);
void lt_forget(void *plan);

// lt_check returns why lt_linear cannot compute such products of addresses that are multiples of 256, as those of ONNX Runtime's arena are,
// with or without a bias, a residual and a sum: a status of cuBLAS, or 0.
int lt_check(const lt_handle *h, int transa, int transb, int m, int n, int k, int lda, int ldb, int bias, int residual, int gelu, int sum, int type,
             int compute, size_t workspace_size);

// lt_forget_choices frees what the handle has measured.
void lt_forget_choices(lt_handle *h);
