// A CUDA driver without a GPU: one card of 1 GiB whose memory is malloc's and whose streams do all work at once, in the call
// that queues it. It is what the tests of package cuda run on where there is no GPU. The calls that the package needs are
// here; scripts/cuda-stub.sh adds all others, which return 34. It refuses what the real driver refuses.
#include <cuda.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { CARD = 1 << 30, BLOCKS = 256, TAG = 0x7874 };

// A block is memory of the card, or memory of the machine that is pinned.
typedef struct {
	char *start;
	size_t size;
	enum { NONE, DEVICE, HOST, REGISTERED } kind;
} block;

typedef struct { // CUstream
	int tag;
} queue;

typedef struct { // CUevent
	int recorded;
	struct timespec at;
} point;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block blocks[BLOCKS];
static size_t used;
static int retained;
static int primary; // its address is the primary context's handle
static __thread CUcontext current, below;
static __thread CUstreamCaptureMode capture = CU_STREAM_CAPTURE_MODE_GLOBAL;

// Every call but the first few needs a current context.
#define BOUND \
	if (!current) return CUDA_ERROR_INVALID_CONTEXT

// Some calls are refused on a thread that has not relaxed its mode, while another thread captures a CUDA graph; here always.
#define RELAXED \
	if (capture != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

static CUresult add(char *start, size_t size, int kind) {
	CUresult result = CUDA_ERROR_UNKNOWN;
	pthread_mutex_lock(&lock);
	for (block *b = blocks; b < blocks + BLOCKS; b++)
		if (b->kind == NONE) {
			*b = (block){start, size, kind};
			result = CUDA_SUCCESS;
			break;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

// take removes the block that starts there, and returns its size, or 0.
static size_t take(char *start, int kind) {
	size_t size = 0;
	pthread_mutex_lock(&lock);
	for (block *b = blocks; b < blocks + BLOCKS; b++)
		if (b->kind == kind && b->start == start) {
			size = b->size;
			b->kind = NONE;
			break;
		}
	pthread_mutex_unlock(&lock);
	return size;
}

// holds reports whether a block of the kind has all these bytes; 0 bytes are asked for to see whether it has the first.
static int holds(int kind, const char *start, size_t size) {
	int found = 0;
	pthread_mutex_lock(&lock);
	for (block *b = blocks; b < blocks + BLOCKS; b++)
		found |= b->kind == kind && start >= b->start && start < b->start + b->size && size <= (size_t)(b->start + b->size - start);
	pthread_mutex_unlock(&lock);
	return found;
}

CUresult cuInit(unsigned flags) {
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	return visible && !*visible ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version) {
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
	switch (error) {
	case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
	case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
	case CUDA_ERROR_NO_DEVICE: *name = "CUDA_ERROR_NO_DEVICE"; break;
	case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
	case CUDA_ERROR_INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
	case CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED: *name = "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"; break;
	default: *name = NULL; return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count) {
	*count = 1;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	*device = ordinal;
	return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
	for (int i = 0; i < 16; i++) uuid->bytes[i] = 0xa0 + i;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
	strncpy(name, "Fake card", size);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device) {
	strncpy(id, "0000:1B:00.0", size);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { return CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	pthread_mutex_lock(&lock);
	retained++;
	pthread_mutex_unlock(&lock);
	*context = (CUcontext)&primary;
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
	pthread_mutex_lock(&lock);
	int left = retained--;
	pthread_mutex_unlock(&lock);
	return left > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxSetCurrent(CUcontext context) {
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context) { // one deep is enough
	below = current;
	current = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context) {
	BOUND;
	*context = current;
	current = below;
	below = NULL;
	return CUDA_SUCCESS;
}

CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
	CUstreamCaptureMode before = capture;
	capture = *mode;
	*mode = before;
	return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *available, size_t *total) {
	BOUND;
	pthread_mutex_lock(&lock);
	*available = CARD - used;
	pthread_mutex_unlock(&lock);
	*total = CARD;
	return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *memory, size_t size) {
	BOUND;
	RELAXED;
	size_t rounded = (size + 511) & ~511ul;
	pthread_mutex_lock(&lock);
	int fits = size <= CARD && rounded <= CARD - used;
	if (fits) used += rounded;
	pthread_mutex_unlock(&lock);
	if (!fits) return CUDA_ERROR_OUT_OF_MEMORY;
	char *p = aligned_alloc(512, rounded);
	memset(p, 0xcd, rounded); // the driver does not clear it
	*memory = (CUdeviceptr)p;
	return add(p, rounded, DEVICE);
}

CUresult cuMemFree(CUdeviceptr memory) {
	BOUND;
	RELAXED;
	size_t size = take((char *)memory, DEVICE);
	if (!size) return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	used -= size;
	pthread_mutex_unlock(&lock);
	free((void *)memory);
	return CUDA_SUCCESS;
}

CUresult cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
	BOUND;
	char *p = aligned_alloc(4096, (size + 4095) & ~4095ul);
	if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
	memset(p, 0xcd, size);
	*memory = p;
	return add(p, size, HOST);
}

CUresult cuMemFreeHost(void *memory) {
	BOUND;
	if (!take(memory, HOST)) return CUDA_ERROR_INVALID_VALUE;
	free(memory);
	return CUDA_SUCCESS;
}

CUresult cuMemHostRegister(void *memory, size_t size, unsigned flags) {
	BOUND;
	RELAXED;
	if (holds(REGISTERED, memory, 0)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	return add(memory, size, REGISTERED);
}

CUresult cuMemHostUnregister(void *memory) {
	BOUND;
	RELAXED;
	return take(memory, REGISTERED) ? CUDA_SUCCESS : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

// A stream's and an event's handle must be one of ours.
static CUresult stream(CUstream s) { return s && ((queue *)s)->tag == TAG ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream s) {
	BOUND;
	if (!holds(DEVICE, (char *)to, size)) return CUDA_ERROR_INVALID_VALUE;
	memcpy((void *)to, from, size);
	return stream(s);
}

CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream s) {
	BOUND;
	if (!holds(DEVICE, (char *)from, size)) return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, (void *)from, size);
	return stream(s);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream s) {
	BOUND;
	if (!holds(DEVICE, (char *)to, size) || !holds(DEVICE, (char *)from, size)) return CUDA_ERROR_INVALID_VALUE;
	memmove((void *)to, (void *)from, size);
	return stream(s);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream s) {
	BOUND;
	if (!holds(DEVICE, (char *)to, size)) return CUDA_ERROR_INVALID_VALUE;
	memset((void *)to, value, size);
	return stream(s);
}

CUresult cuStreamCreate(CUstream *s, unsigned flags) {
	BOUND;
	queue *q = malloc(sizeof *q);
	q->tag = TAG;
	*s = (CUstream)q;
	return CUDA_SUCCESS;
}

CUresult cuStreamQuery(CUstream s) { return stream(s); }
CUresult cuStreamSynchronize(CUstream s) { return stream(s); }
CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned flags) { return stream(s); }

CUresult cuStreamDestroy(CUstream s) {
	CUresult result = stream(s);
	if (!result) free(s);
	return result;
}

CUresult cuEventCreate(CUevent *e, unsigned flags) {
	BOUND;
	*e = calloc(1, sizeof(point));
	return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent e, CUstream s) {
	point *p = (point *)e;
	p->recorded = 1;
	clock_gettime(CLOCK_MONOTONIC, &p->at);
	return stream(s);
}

CUresult cuEventQuery(CUevent e) { return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent e) { return CUDA_SUCCESS; }

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
	point *a = (point *)start, *b = (point *)end;
	if (!a->recorded || !b->recorded) return CUDA_ERROR_INVALID_HANDLE;
	*ms = (b->at.tv_sec - a->at.tv_sec) * 1e3 + (b->at.tv_nsec - a->at.tv_nsec) / 1e6;
	return CUDA_SUCCESS;
}

CUresult cuEventDestroy(CUevent e) {
	free(e);
	return CUDA_SUCCESS;
}
