// Custom operators whose nodes launch kernels. kernelcall.go fills the structures, all of them in C memory.
#include "ort.h"

enum { KERNEL_POINTERS = 256 }; // of a call: its inputs, its outputs and its scratch memory

// kernel_launcher is cuLaunchKernel.
typedef int (*kernel_launcher)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                               void **extra);

// cooperative_launcher is cuLaunchCooperativeKernel.
typedef int (*cooperative_launcher)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                                    unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments);

// kernel_products are products of matrices in rows. The addresses of the matrices begin the scratch memory, unless the only product is planned:
// then the matrices, and the bias and the residual if it adds them, are the call's first inputs, and the result is its first output.
typedef struct {
	int count, rows, inner, columns, transposed[2];
	bool bf16, bias, residual, gelu;
	size_t workspace; // where the library's part of the scratch memory begins
	void **plan;      // of a planned product: made by its first run, freed with the session. Otherwise NULL
} kernel_products;

// kernel_multiplier has functions of cuBLAS.
typedef struct {
	void *handle;
	int (*set_stream)(void *handle, void *stream);
	int (*set_workspace)(void *handle, void *workspace, size_t bytes);
	int (*gemm_batched)(void *handle, int transa, int transb, int m, int n, int k, const void *alpha, const void *const a[],
	                    int atype, int lda, const void *const b[], int btype, int ldb, const void *beta, void *const c[],
	                    int ctype, int ldc, int count, int compute, int algorithm);
	void *linear_handle;
	int (*linear)(void *linear_handle, void **plan, int transa, int transb, int m, int n, int k, const void *a, int lda, const void *b,
	              int ldb, const void *bias, const void *residual, int gelu, void *sum, void *c, int type, int compute, void *workspace,
	              size_t workspace_size, void *stream);
	int (*check)(void *linear_handle, int transa, int transb, int m, int n, int k, int lda, int ldb, int bias, int residual, int gelu, int sum,
	             int type, int compute, size_t workspace_size);
	void (*forget)(void *plan);
	bool tf32;
} kernel_multiplier;

// kernel_convolution is a convolution, or one of its gradients, as cudnn_form in gpu/cudnn has it. Its operands are the call's two inputs, its result
// is the only output.
typedef struct {
	int64_t numbers[20];
} kernel_convolution;

// kernel_convolver has functions for cuDNN.
typedef struct {
	void *handle;
	int (*convolve)(void *handle, const kernel_convolution *form, const void *first, const void *second, void *result, void *workspace,
	                size_t workspace_size, void *stream);
	int (*check)(void *handle, const kernel_convolution *form, size_t workspace_size);
} kernel_convolver;

typedef struct {
	const kernel_products *products;       // instead of a function, or NULL
	const kernel_convolution *convolution; // the same
	uintptr_t host;                        // a handle of a Go function instead, or 0
	uintptr_t function;
	unsigned grid[3], block, shared;
	bool cooperative;
	const int32_t *arguments; // indices of the call's pointers
	size_t argument_count;
} kernel_launch;

typedef struct {
	ONNXTensorElementDataType type;
	const int64_t *shape;
	size_t rank, bytes;
} kernel_output;

typedef struct kernel_op kernel_op;
typedef struct kernel_set kernel_set;

typedef struct {
	const kernel_set *set;
	const kernel_op *op;
	size_t index, inputs, scratch;
	const kernel_output *outputs;
	size_t output_count;
	const kernel_launch *launches;
	size_t launch_count;
} kernel_call;

// kernel_set has all calls of a session.
struct kernel_set {
	uintptr_t launch;            // a kernel_launcher
	uintptr_t cooperative_launch; // a cooperative_launcher, or 0
	uintptr_t fill;              // the kernel that fills each output before its call, or 0
	const kernel_multiplier *multiplier;
	const kernel_convolver *convolver;
	bool cuda;                   // the CUDA provider runs the nodes
	const OrtMemoryInfo *memory; // for scratch memory
	const kernel_call *calls;
	size_t call_count;
};

// kernel_set_functions sets the addresses of a multiplier, kernel_set_linear those for planned products.
void kernel_set_functions(kernel_multiplier *m, uintptr_t handle, uintptr_t set_stream, uintptr_t set_workspace, uintptr_t gemm_batched);
void kernel_set_linear(kernel_multiplier *m, uintptr_t handle, uintptr_t linear, uintptr_t check, uintptr_t forget);

// kernel_set_convolver sets the addresses of a convolver, kernel_check_convolution returns its status for a convolution, or 0 if it can compute it.
void kernel_set_convolver(kernel_convolver *c, uintptr_t handle, uintptr_t convolve, uintptr_t check);
int kernel_check_convolution(const kernel_convolver *c, const kernel_convolution *form, size_t workspace_size);

// kernel_check returns the status of cuBLAS for a planned product, or 0 if the multiplier can compute it.
int kernel_check(const kernel_multiplier *m, const kernel_products *p, bool sum, size_t workspace_size);

// kernel_forget frees a plan, if there is one.
void kernel_forget(const kernel_multiplier *m, void **plan);

// kernel_new_op returns the operator for calls with the output types of first; free() frees it.
kernel_op *kernel_new_op(const char *name, const kernel_set *set, const kernel_call *first);

OrtStatus *kernel_new_domain(const char *name, OrtCustomOpDomain **out);
OrtStatus *kernel_add_op(OrtCustomOpDomain *domain, const kernel_op *op);
OrtStatus *kernel_add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain);
void kernel_release_domain(OrtCustomOpDomain *domain);

// kernelHost calls the Go function of a handle. It returns NULL, or a text that free() frees: what has failed.
char *kernelHost(uintptr_t handle);
