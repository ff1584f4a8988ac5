#pragma once
#include "linear.h"

// The addresses of A, B, C, the residual, the bias and the sum. cuBLASLt takes the alignment of the last two from the descriptor.
enum { ADDRESSES = 6, RESIDUAL = 3, BIAS = 4, SUM = 5 };

// lt_form is what the choice of an algorithm depends on. Forms are compared as bytes: there is no padding.
typedef struct {
	int transa, transb, m, n, k, lda, ldb, epilogue, type, compute, residual;
	uint32_t alignment[ADDRESSES]; // the least so far, or 0
	uint32_t reserved;
	size_t workspace_size;
} lt_form;
_Static_assert(sizeof(lt_form) == 11 * sizeof(int) + sizeof(size_t) + (ADDRESSES + 1) * sizeof(uint32_t), "padding");

typedef struct {
	const lt_library *library;
	lt_form form;
	void *descriptor, *a, *b, *c;
	uint64_t algorithm[8];
} lt_plan;

// lt_choose sets the algorithm of a plan for addresses, to which its descriptor points, and for all others that a call has had. stream and
// workspace are those of the call. To measure, it computes the product.
int lt_choose(lt_handle *h, lt_plan *p, const void *const addresses[], void *workspace, void *stream);

// lt_first sets the first algorithm that cuBLASLt proposes.
int lt_first(const lt_handle *h, lt_plan *p, const void *const addresses[]);

// lt_run queues the product with an algorithm.
int lt_run(const lt_handle *h, const lt_plan *p, const void *const addresses[], const uint64_t *algorithm, void *workspace, void *stream);

// lt_alignment of an address, up to the 256 bytes that cuBLASLt knows at most.
uint32_t lt_alignment(const void *p);
