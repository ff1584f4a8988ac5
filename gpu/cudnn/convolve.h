#pragma once
#include <stddef.h>
#include <stdint.h>

// cudnn_library has functions of cuDNN's graph API and, to measure, of the CUDA driver. Their types have opaque pointers in place of handles,
// descriptors, events and streams, and int for enumerations.
typedef struct {
	size_t (*GetVersion)(void);
	int (*Create)(void **handle);
	int (*Destroy)(void *handle);
	int (*SetStream)(void *handle, void *stream);
	int (*BackendCreateDescriptor)(int type, void **descriptor);
	int (*BackendDestroyDescriptor)(void *descriptor);
	int (*BackendFinalize)(void *descriptor);
	int (*BackendSetAttribute)(void *descriptor, int name, int type, int64_t count, const void *elements);
	int (*BackendGetAttribute)(void *descriptor, int name, int type, int64_t requested, int64_t *count, void *elements);
	int (*BackendExecute)(void *handle, void *plan, void *pack);
	int (*EventCreate)(void **event, unsigned flags);
	int (*EventRecord)(void *event, void *stream);
	int (*EventSynchronize)(void *event);
	int (*EventElapsedTime_v2)(float *milliseconds, void *begin, void *end);
	int (*EventDestroy_v2)(void *event);
	int (*StreamIsCapturing)(void *stream, int *status);
	// Around calls in which cuDNN may compile: what it loads for that sets the handlers of signals that it finds once more, without the stack on which
	// Go runs them. See package library.
	void (*keep_handlers)(void);
	void (*restore_handlers)(void);
} cudnn_library;

enum { CUDNN_FORWARD, CUDNN_DATA_GRADIENT, CUDNN_WEIGHT_GRADIENT };

// cudnn_form is a convolution over two dimensions, or one of its gradients. x is in memory as [batch, sizes, in], y as [batch, results, out], the
// weights as [out, kernel, in / groups], all of one type. Zeros surround x. Forms are compared as bytes: there is no padding.
typedef struct {
	int64_t pass, type; // a cudnnDataType_t
	int64_t batch, in, out, groups;
	int64_t size[2], result[2], kernel[2], stride[2], dilation[2], before[2], after[2];
} cudnn_form;
_Static_assert(sizeof(cudnn_form) == 20 * sizeof(int64_t), "padding");

typedef struct cudnn_plan cudnn_plan;

// cudnn_handle is the first argument of cudnn_convolve. One thread at a time may use it.
typedef struct {
	const cudnn_library *library;
	void *handle;
	int measured;      // whether forms get the fastest of the algorithms, which may differ from run to run
	int tf32;          // whether operands in f32 may be rounded to TF32
	cudnn_plan *plans; // of the forms so far
} cudnn_handle;

// cudnn_new creates the cudnnHandle_t of a handle that has its library.
int cudnn_new(cudnn_handle *h);

// cudnn_convolve queues y of x and w (CUDNN_FORWARD), dx of dy and w (CUDNN_DATA_GRADIENT) or dw of x and dy (CUDNN_WEIGHT_GRADIENT), whose
// addresses are multiples of 16. It asks for sums in f32. The algorithm is one that gives the same bits in every run and that rounds no operand in
// f32, except to TF32 if the handle says so. The first call with a form makes a plan for it; to measure, it waits for the stream, and computes the
// result with each algorithm that cuDNN proposes.
int cudnn_convolve(cudnn_handle *h, const cudnn_form *f, const void *first, const void *second, void *result, void *workspace,
                   size_t workspace_size, void *stream);

// cudnn_check returns why cudnn_convolve cannot compute a form with so much memory: a status of cuDNN, or 0.
int cudnn_check(cudnn_handle *h, const cudnn_form *f, size_t workspace_size);

// cudnn_end frees the plans of a handle, and destroys its cudnnHandle_t.
int cudnn_end(cudnn_handle *h);

// cudnn_open finds the functions of cuDNN, cudnn_open_driver those of the driver. They return why the library cannot be loaded, or set the name of
// a function that it lacks.
const char *cudnn_open(const char *name, cudnn_library *l, const char **lacks);
const char *cudnn_open_driver(const char *name, cudnn_library *l, const char **lacks);
