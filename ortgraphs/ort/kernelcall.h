// Custom operators whose nodes launch kernels. kernelcall.go fills the structures, all of them in C memory.
#include "ort.h"

enum { KERNEL_POINTERS = 256 }; // of a call: its inputs, its outputs and its scratch memory

// kernel_launcher is cuLaunchKernel.
typedef int (*kernel_launcher)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                               unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments,
                               void **extra);

typedef struct {
	uintptr_t function;
	unsigned grid[3], block, shared;
	const int32_t *arguments; // indices of the call's pointers
	size_t argument_count;
} kernel_launch;

typedef struct {
	ONNXTensorElementDataType type;
	const int64_t *shape;
	size_t rank;
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
	bool cuda;                   // the CUDA provider runs the nodes
	const OrtMemoryInfo *memory; // for scratch memory
	const kernel_call *calls;
	size_t call_count;
};

// kernel_new_op returns the operator for calls with the output types of first; free() frees it.
kernel_op *kernel_new_op(const char *name, const kernel_set *set, const kernel_call *first);

OrtStatus *kernel_new_domain(const char *name, OrtCustomOpDomain **out);
OrtStatus *kernel_add_op(OrtCustomOpDomain *domain, const kernel_op *op);
OrtStatus *kernel_add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain);
void kernel_release_domain(OrtCustomOpDomain *domain);
