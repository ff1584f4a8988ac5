#include "kernelcall.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "structs.h"

#define FIELD(name, result, ...) result (*name)(__VA_ARGS__);
struct OrtCustomOp {
	uint32_t version;
	ORT_CUSTOM_OP(FIELD)
};
struct OrtAllocator {
	uint32_t version;
	ORT_ALLOCATOR(FIELD)
};

struct kernel_op {
	OrtCustomOp base; // the callbacks get its address
	const char *name;
	const kernel_set *set;
	const kernel_output *outputs;
	size_t output_count;
};

static const kernel_op *own(const OrtCustomOp *op) { return (const kernel_op *)op; }

static OrtStatus *fail(const char *format, ...) {
	char message[256];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	return ORT(CreateStatus)(ORT_FAIL, message);
}

static const char *name_of(const OrtCustomOp *op) { return own(op)->name; }
static const char *provider(const OrtCustomOp *op) { return own(op)->set->cuda ? CUDA_PROVIDER : NULL; }
static int version(const OrtCustomOp *op) { return 1; }

// The only formal input is variadic and of any types.
static size_t one(const OrtCustomOp *op) { return 1; }
static ONNXTensorElementDataType any_type(const OrtCustomOp *op, size_t i) { return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED; }
static OrtCustomOpInputOutputCharacteristic variadic(const OrtCustomOp *op, size_t i) { return INPUT_OUTPUT_VARIADIC; }
static OrtMemType device_memory(const OrtCustomOp *op, size_t i) { return OrtMemTypeDefault; }
static int at_least_one(const OrtCustomOp *op) { return 1; }
static int no(const OrtCustomOp *op) { return 0; }

static size_t output_count(const OrtCustomOp *op) { return own(op)->output_count; }
static ONNXTensorElementDataType output_type(const OrtCustomOp *op, size_t i) { return own(op)->outputs[i].type; }
static OrtCustomOpInputOutputCharacteristic required(const OrtCustomOp *op, size_t i) { return INPUT_OUTPUT_REQUIRED; }

// find_call returns the call of an operator with that index, or NULL.
static const kernel_call *find_call(const kernel_op *op, int64_t index) {
	if (index < 0 || (uint64_t)index >= op->set->call_count) return NULL;
	const kernel_call *call = &op->set->calls[index];
	return call->op == op ? call : NULL;
}

// create makes a node's kernel: its call.
static OrtStatus *create(const OrtCustomOp *op, const OrtApi *api, const OrtKernelInfo *info, void **kernel) {
	int64_t index;
	OrtStatus *s = ORT(KernelInfoGetAttribute_int64)(info, "call", &index);
	if (s) return s;
	const kernel_call *call = find_call(own(op), index);
	if (!call)
		return fail("%s: there is no kernel call %lld with these outputs", own(op)->name, (long long)index);
	size_t inputs;
	if ((s = ORT(KernelInfo_GetInputCount)(info, &inputs))) return s;
	if (inputs != call->inputs)
		return fail("kernel call %zu has %zu inputs, but its node has %zu", call->index, call->inputs, inputs);
	*kernel = (void *)call;
	return NULL;
}

static void destroy(void *kernel) {}

static OrtStatus *set_output(OrtShapeInferContext *context, size_t i, const kernel_output *output) {
	OrtTensorTypeAndShapeInfo *info; // one for each output: another shape of another rank would mix with the first
	OrtStatus *s = ORT(CreateTensorTypeAndShapeInfo)(&info);
	if (s) return s;
	s = ORT(SetTensorElementType)(info, output->type);
	if (!s) s = ORT(SetDimensions)(info, output->shape, output->rank);
	if (!s) s = ORT(ShapeInferContext_SetOutputTypeShape)(context, i, info);
	ORT(ReleaseTensorTypeAndShapeInfo)(info);
	return s;
}

// infer sets the types and shapes of a node's outputs. It leaves errors to create: ONNX Runtime drops the status.
static OrtStatus *infer(const OrtCustomOp *op, OrtShapeInferContext *context) {
	const OrtOpAttr *attribute;
	int64_t index;
	size_t size;
	OrtStatus *s = ORT(ShapeInferContext_GetAttribute)(context, "call", &attribute);
	if (!s) s = ORT(ReadOpAttr)(attribute, ORT_OP_ATTR_INT, &index, sizeof index, &size);
	const kernel_call *call = s ? NULL : find_call(own(op), index);
	for (size_t i = 0; call && i < call->output_count && !s; i++) s = set_output(context, i, &call->outputs[i]);
	if (s) ORT(ReleaseStatus)(s);
	return NULL;
}

// find_tensors sets the pointers of a call's inputs and outputs. ONNX Runtime refuses nodes that leave one out.
static OrtStatus *find_tensors(const kernel_call *call, OrtKernelContext *context, void **pointers) {
	OrtStatus *s;
	for (size_t i = 0; i < call->inputs; i++) {
		const OrtValue *v;
		if ((s = ORT(KernelContext_GetInput)(context, i, &v))) return s;
		if ((s = ORT(GetTensorMutableData)((OrtValue *)v, pointers++))) return s;
	}
	for (size_t i = 0; i < call->output_count; i++) {
		const kernel_output *o = &call->outputs[i];
		OrtValue *v;
		if ((s = ORT(KernelContext_GetOutput)(context, i, o->shape, o->rank, &v))) return s;
		if ((s = ORT(GetTensorMutableData)(v, pointers++))) return s;
	}
	return NULL;
}

// Of cublas_api.h and library_types.h: CUDA_R_32F and CUDA_R_16BF, CUBLAS_COMPUTE_32F and CUBLAS_COMPUTE_32F_FAST_TF32, and
// CUBLAS_GEMM_DEFAULT.
enum { R_32F = 0, R_16BF = 14, COMPUTE_32F = 68, COMPUTE_32F_FAST_TF32 = 77, GEMM_DEFAULT = -1 };

static int type_of(const kernel_products *p) { return p->bf16 ? R_16BF : R_32F; }
static int compute_of(const kernel_products *p, const kernel_multiplier *m) { return !p->bf16 && m->tf32 ? COMPUTE_32F_FAST_TF32 : COMPUTE_32F; }

// strides are those of B and A, which change places in cuBLAS, as in multiply.
static int stride_b(const kernel_products *p) { return p->transposed[1] ? p->inner : p->columns; }
static int stride_a(const kernel_products *p) { return p->transposed[0] ? p->rows : p->inner; }

int kernel_check(const kernel_multiplier *m, const kernel_products *p, bool sum, size_t workspace_size) {
	return m->check(m->linear_handle, p->transposed[1], p->transposed[0], p->columns, p->rows, p->inner, stride_b(p), stride_a(p), p->bias,
	                p->residual, p->gelu, sum, type_of(p), compute_of(p, m), workspace_size);
}

// multiply_planned queues one product, which may add a bias and a residual.
static OrtStatus *multiply_planned(const kernel_call *call, const kernel_products *p, void *stream, void **pointers) {
	const kernel_multiplier *m = call->set->multiplier;
	const int *turned = p->transposed;
	const void *a = pointers[0], *b = pointers[1], *bias = p->bias ? pointers[2] : NULL, *residual = p->residual ? pointers[call->inputs - 1] : NULL;
	void *c = pointers[call->inputs], *workspace = pointers[call->inputs + call->output_count];
	void *sum = call->output_count > 1 ? pointers[call->inputs + 1] : NULL;
	int status = m->linear(m->linear_handle, p->plan, turned[1], turned[0], p->columns, p->rows, p->inner, b, stride_b(p), a, stride_a(p), bias,
	                       residual, p->gelu, sum, c, type_of(p), compute_of(p, m), workspace, call->scratch, stream);
	return status ? fail("kernel call %zu: cuBLAS failure %d: cublasLtMatmul", call->index, status) : NULL;
}

// multiply queues products. cuBLAS has its matrices column by column: it sees each of ours transposed, and computes B' A'.
static OrtStatus *multiply(const kernel_call *call, const kernel_products *p, void *stream, void **tables) {
	const kernel_multiplier *m = call->set->multiplier;
	const float one = 1, zero = 0;
	const int type = type_of(p), *turned = p->transposed;
	void **a = tables, **b = a + p->count, **c = b + p->count;
	int status = m->set_stream(m->handle, stream); // which forgets the workspace
	if (!status) status = m->set_workspace(m->handle, (char *)tables + p->workspace, call->scratch - p->workspace);
	if (!status)
		status = m->gemm_batched(m->handle, turned[1], turned[0], p->columns, p->rows, p->inner, &one, (const void *const *)b, type,
		                         stride_b(p), (const void *const *)a, type, stride_a(p), &zero, c, type, p->columns, p->count, compute_of(p, m), GEMM_DEFAULT);
	return status ? fail("kernel call %zu: cuBLAS failure %d: cublasGemmBatchedEx", call->index, status) : NULL;
}

// Of cudnn_graph_v9.h.
enum { CUDNN_HOST_ALLOCATION_FAILED = 4003, CUDNN_DEVICE_ALLOCATION_FAILED = 4004 };

static OrtStatus *convolve(const kernel_call *call, const kernel_convolution *form, void *stream, void **pointers) {
	const kernel_convolver *c = call->set->convolver;
	const int status = c->convolve(c->handle, form, pointers[0], pointers[1], pointers[2], pointers[3], call->scratch, stream);
	if (status == CUDNN_HOST_ALLOCATION_FAILED || status == CUDNN_DEVICE_ALLOCATION_FAILED)
		return fail("kernel call %zu: cuDNN failure %d: CUDNN_STATUS_ALLOC_FAILED", call->index, status);
	return status ? fail("kernel call %zu: cuDNN failure %d: convolution", call->index, status) : NULL;
}

static OrtStatus *launch(const kernel_call *call, OrtKernelContext *context, void **pointers) {
	void *stream; // NULL on the CPU
	OrtStatus *s = ORT(KernelContext_GetGPUComputeStream)(context, &stream);
	for (size_t i = 0; i < call->launch_count && !s; i++) {
		const kernel_launch *l = &call->launches[i];
		if (l->products) {
			s = l->products->plan ? multiply_planned(call, l->products, stream, pointers)
			                      : multiply(call, l->products, stream, pointers[call->inputs + call->output_count]);
			continue;
		}
		if (l->convolution) {
			s = convolve(call, l->convolution, stream, pointers);
			continue;
		}
		if (l->host) {
			char *failure = kernelHost(l->host);
			if (failure) s = ORT(CreateStatus)(ORT_FAIL, failure);
			free(failure);
			continue;
		}
		void *arguments[KERNEL_POINTERS];
		for (size_t j = 0; j < l->argument_count; j++) arguments[j] = &pointers[l->arguments[j]];
		void *function = (void *)l->function;
		const unsigned *grid = l->grid;
		int result = l->cooperative ? ((cooperative_launcher)call->set->cooperative_launch)(function, grid[0], grid[1], grid[2], l->block, 1, 1,
		                                                                                    l->shared, stream, arguments)
		                            : ((kernel_launcher)call->set->launch)(function, grid[0], grid[1], grid[2], l->block, 1, 1, l->shared,
		                                                                   stream, arguments, NULL);
		// The text makes error 2 an ErrOutOfMemory.
		if (result)
			s = fail("kernel call %zu, launch %zu: CUDA failure %d: %s", call->index, i, result,
			         l->cooperative ? "cuLaunchCooperativeKernel" : "cuLaunchKernel");
	}
	return s;
}

// fill fills the outputs of a call. The kernel gets the address and the number of bytes of each.
static OrtStatus *fill(const kernel_call *call, OrtKernelContext *context, void **outputs) {
	void *stream;
	OrtStatus *s = ORT(KernelContext_GetGPUComputeStream)(context, &stream);
	for (size_t i = 0; i < call->output_count && !s; i++) {
		size_t bytes = call->outputs[i].bytes;
		unsigned blocks = (unsigned)(bytes / 4096 < 4096 ? bytes / 4096 + 1 : 4096);
		void *arguments[] = {&outputs[i], &bytes};
		int result = ((kernel_launcher)call->set->launch)((void *)call->set->fill, blocks, 1, 1, 256, 1, 1, 0, stream, arguments, NULL);
		if (result) s = fail("kernel call %zu: CUDA failure %d: cuLaunchKernel", call->index, result);
	}
	return s;
}

static void release_allocator(OrtAllocator **allocator) {
	if (*allocator) ORT(ReleaseAllocator)(*allocator);
}

static OrtStatus *compute(void *kernel, OrtKernelContext *context) {
	const kernel_call *call = kernel;
	void *pointers[KERNEL_POINTERS] = {0}; // a kernel may take all of them as one structure
	OrtStatus *s = find_tensors(call, context, pointers);
	if (!s && call->set->fill) s = fill(call, context, pointers + call->inputs);
	if (s) return s;
	if (!call->scratch) return launch(call, context, pointers);

	// Only memory that is allocated on the run's stream can be some that the run has freed. An arena at its limit throws,
	// through this function, which -fexceptions and the attribute allow.
	__attribute__((cleanup(release_allocator))) OrtAllocator *allocator = NULL;
	OrtSyncStream *stream;
	if ((s = ORT(KernelContext_GetAllocator)(context, call->set->memory, &allocator))) return s;
	if ((s = ORT(KernelContext_GetSyncStream)(context, &stream))) return s;
	void *scratch = allocator->AllocOnStream(allocator, call->scratch, stream);
	if (!scratch) return fail("Failed to allocate memory for requested buffer of size %zu", call->scratch);
	pointers[call->inputs + call->output_count] = scratch;
	s = launch(call, context, pointers);
	// The kernels need not be done: the next user of this memory is queued on the same stream.
	OrtStatus *freed = ORT(AllocatorFree)(allocator, scratch);
	if (!s) return freed;
	if (freed) ORT(ReleaseStatus)(freed);
	return s;
}

void kernel_set_functions(kernel_multiplier *m, uintptr_t handle, uintptr_t set_stream, uintptr_t set_workspace, uintptr_t gemm_batched) {
	m->handle = (void *)handle;
	*(uintptr_t *)&m->set_stream = set_stream;
	*(uintptr_t *)&m->set_workspace = set_workspace;
	*(uintptr_t *)&m->gemm_batched = gemm_batched;
}

void kernel_set_linear(kernel_multiplier *m, uintptr_t handle, uintptr_t linear, uintptr_t check, uintptr_t forget) {
	m->linear_handle = (void *)handle;
	*(uintptr_t *)&m->linear = linear;
	*(uintptr_t *)&m->check = check;
	*(uintptr_t *)&m->forget = forget;
}

void kernel_set_convolver(kernel_convolver *c, uintptr_t handle, uintptr_t convolve, uintptr_t check) {
	c->handle = (void *)handle;
	*(uintptr_t *)&c->convolve = convolve;
	*(uintptr_t *)&c->check = check;
}

int kernel_check_convolution(const kernel_convolver *c, const kernel_convolution *form, size_t workspace_size) {
	return c->check(c->handle, form, workspace_size);
}

void kernel_forget(const kernel_multiplier *m, void **plan) {
	if (*plan) m->forget(*plan);
	*plan = NULL;
}

kernel_op *kernel_new_op(const char *name, const kernel_set *set, const kernel_call *first) {
	kernel_op *op = malloc(sizeof *op);
	*op = (kernel_op){
	    .base = {
	        .version = ORT_API_VERSION,
	        .GetName = name_of,
	        .GetExecutionProviderType = provider,
	        .GetInputType = any_type,
	        .GetInputTypeCount = one,
	        .GetOutputType = output_type,
	        .GetOutputTypeCount = output_count,
	        .KernelDestroy = destroy,
	        .GetInputCharacteristic = variadic,
	        .GetOutputCharacteristic = required,
	        .GetInputMemoryType = device_memory,
	        .GetVariadicInputMinArity = at_least_one,
	        .GetVariadicInputHomogeneity = no,
	        .GetVariadicOutputMinArity = at_least_one,
	        .GetVariadicOutputHomogeneity = no,
	        .CreateKernelV2 = create,
	        .KernelComputeV2 = compute,
	        .InferOutputShapeFn = infer,
	        .GetStartVersion = version,
	        .GetEndVersion = version,
	    },
	    .name = name,
	    .set = set,
	    .outputs = first->outputs,
	    .output_count = first->output_count,
	};
	return op;
}

OrtStatus *kernel_new_domain(const char *name, OrtCustomOpDomain **out) { return ORT(CreateCustomOpDomain)(name, out); }
OrtStatus *kernel_add_op(OrtCustomOpDomain *domain, const kernel_op *op) { return ORT(CustomOpDomain_Add)(domain, &op->base); }
OrtStatus *kernel_add_domain(OrtSessionOptions *options, OrtCustomOpDomain *domain) {
	return ORT(AddCustomOpDomain)(options, domain);
}
void kernel_release_domain(OrtCustomOpDomain *domain) { ORT(ReleaseCustomOpDomain)(domain); }
