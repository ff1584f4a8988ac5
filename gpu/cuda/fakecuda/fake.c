// A CUDA driver without a GPU: the cards of card.h, whose memory is malloc's and whose streams do all work at once, in the call
// that queues it. It is what package cuda and the program with CUDA are tested on where there is no GPU. The calls that the
// package needs are here; libcuda.a answers all others. It refuses what the real driver refuses.
#define _GNU_SOURCE
#include <cuda.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "card.h"
#include "module.h"

enum { BLOCKS = 256, TAG = 0x7874 };

// A block is memory of the card, or memory of the machine that is pinned.
typedef struct {
	char *start;
	size_t size;
	enum { NONE, DEVICE, HOST, REGISTERED, PEER } kind; // PEER: of another process
	int card; // of DEVICE
	int file; // of DEVICE: other processes map it
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
static size_t memory[CARDS], used[CARDS];
static int visible[CARDS], count; // the card of each CUdevice that this process sees
static int retained[CARDS];       // also: the address of each is the primary context's handle
static __thread CUcontext current, below;
static __thread CUstreamCaptureMode capture = CU_STREAM_CAPTURE_MODE_GLOBAL;

// here is the card of the current context.
static int here(void) { return (int)((int *)current - retained); }

// Every call but the first few needs a current context.
#define BOUND \
	if (!current) return CUDA_ERROR_INVALID_CONTEXT

// Some calls are refused on a thread that has not relaxed its mode, while another thread captures a CUDA graph; here always.
#define RELAXED \
	if (capture != CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED

static CUresult add_file(char *start, size_t size, int kind, int file) {
	CUresult result = CUDA_ERROR_UNKNOWN;
	pthread_mutex_lock(&lock);
	for (block *b = blocks; b < blocks + BLOCKS; b++)
		if (b->kind == NONE) {
			*b = (block){start, size, kind, current ? here() : 0, file};
			result = CUDA_SUCCESS;
			break;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

static CUresult add(char *start, size_t size, int kind) { return add_file(start, size, kind, -1); }

// take removes the block that starts there, gives its card the memory back, and returns its size, or 0.
static size_t take(char *start, int kind) {
	size_t size = 0;
	pthread_mutex_lock(&lock);
	for (block *b = blocks; b < blocks + BLOCKS; b++)
		if (b->kind == kind && b->start == start) {
			size = b->size;
			b->kind = NONE;
			if (kind == DEVICE) used[b->card] -= size, close(b->file);
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

// taken returns the bytes of a card that this process has, with its context. The caller holds the lock.
static size_t taken(int card) {
	const char *overhead = getenv("XTTS_PLUGIN_TEST_FAKE_OVERHEAD");
	return used[card] + (overhead && retained[card] > 0 ? strtoul(overhead, NULL, 10) << 20 : 0);
}

size_t fake_used(int card) {
	pthread_mutex_lock(&lock);
	size_t bytes = taken(card);
	pthread_mutex_unlock(&lock);
	return bytes;
}

// named finds a card by its number, or by the beginning of its UUID; -1 if there is none.
static int named(const char *name, int all) {
	for (int card = 0; card < all; card++) {
		unsigned char uuid[16];
		char text[16];
		card_uuid(card, uuid);
		snprintf(text, sizeof text, "GPU-%02x%02x", uuid[0], uuid[1]); // enough to tell them apart
		if (!strncasecmp(name, text, strlen(text)) || (*name == '0' + card && (!name[1] || name[1] == ','))) return card;
	}
	return -1;
}

// As the driver does, it shows the cards of CUDA_VISIBLE_DEVICES up to the first that it does not know.
CUresult cuInit(unsigned flags) {
	int all = cards(memory);
	const char *list = getenv("CUDA_VISIBLE_DEVICES");
	count = 0;
	if (!list)
		for (; count < all; count++) visible[count] = count;
	for (; list && count < CARDS; list = strchr(list, ',')) {
		if (*list == ',') list++;
		int card = named(list, all);
		if (card < 0) break;
		visible[count++] = card;
	}
	return count ? CUDA_SUCCESS : CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version) {
	*version = DRIVER_CUDA;
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
	case CUDA_ERROR_INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
	case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
	default: *name = NULL; return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *n) {
	*n = count;
	return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
	*device = ordinal;
	return ordinal < 0 || ordinal >= count ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
	card_uuid(visible[device], (unsigned char *)uuid->bytes);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device) {
	snprintf(name, size, CARD_NAME);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
	switch (attribute) {
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = card_capability() / 10; return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = card_capability() % 10; return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 228 << 10; return CUDA_SUCCESS;
	case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH: *value = 0; return CUDA_SUCCESS; // it has no cuLaunchCooperativeKernel
	default: return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuDeviceGetPCIBusId(char *id, int size, CUdevice device) {
	snprintf(id, size, "0000:%02X:00.0", card_bus(visible[device]));
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) { return CUDA_SUCCESS; }

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
	pthread_mutex_lock(&lock);
	retained[visible[device]]++;
	pthread_mutex_unlock(&lock);
	*context = (CUcontext)&retained[visible[device]];
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
	pthread_mutex_lock(&lock);
	int left = retained[visible[device]]--;
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
	*available = memory[here()] - taken(here());
	pthread_mutex_unlock(&lock);
	*total = memory[here()];
	return CUDA_SUCCESS;
}

// card_memory is memory that other processes may map, from the file.
static char *card_memory(size_t size, int *file) {
	*file = memfd_create("card", MFD_CLOEXEC);
	char *p = *file < 0 || ftruncate(*file, size) ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, *file, 0);
	if (p != MAP_FAILED) return p;
	if (*file >= 0) close(*file);
	return NULL;
}

CUresult cuMemAlloc(CUdeviceptr *pointer, size_t size) {
	BOUND;
	RELAXED;
	size_t rounded = (size + 511) & ~511ul;
	pthread_mutex_lock(&lock);
	int card = here(), fits = size <= memory[card] && rounded <= memory[card] - taken(card);
	if (fits) used[card] += rounded;
	pthread_mutex_unlock(&lock);
	if (!fits) return CUDA_ERROR_OUT_OF_MEMORY;
	int file;
	char *p = card_memory(rounded, &file);
	if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
	memset(p, 0xcd, rounded); // the driver does not clear it
	*pointer = (CUdeviceptr)p;
	return add_file(p, rounded, DEVICE, file);
}

CUresult cuMemFree(CUdeviceptr pointer) {
	BOUND;
	RELAXED;
	size_t size = take((char *)pointer, DEVICE);
	if (!size) return CUDA_ERROR_INVALID_VALUE;
	munmap((void *)pointer, size);
	return CUDA_SUCCESS;
}

// A block for another process is named by its file in this one.
typedef struct {
	int pid, file;
	unsigned long size;
} shared_name;

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer) {
	BOUND;
	CUresult result = CUDA_ERROR_INVALID_VALUE;
	memset(handle, 0, sizeof *handle);
	pthread_mutex_lock(&lock);
	for (block *b = blocks; b < blocks + BLOCKS; b++)
		if (b->kind == DEVICE && b->start == (char *)pointer) {
			*(shared_name *)handle = (shared_name){getpid(), b->file, b->size};
			result = CUDA_SUCCESS;
		}
	pthread_mutex_unlock(&lock);
	return result;
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned flags) {
	BOUND;
	RELAXED;
	shared_name name = *(shared_name *)&handle;
	char path[80];
	snprintf(path, sizeof path, "/proc/%d/fd/%d", name.pid, name.file);
	int file = open(path, O_RDWR | O_CLOEXEC);
	char *p = file < 0 ? MAP_FAILED : mmap(NULL, name.size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file >= 0) close(file);
	if (p == MAP_FAILED) return CUDA_ERROR_INVALID_VALUE;
	*pointer = (CUdeviceptr)p;
	return add(p, name.size, PEER);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
	BOUND;
	RELAXED;
	size_t size = take((char *)pointer, PEER);
	if (!size) return CUDA_ERROR_INVALID_VALUE;
	munmap((void *)pointer, size);
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
	if ((!holds(DEVICE, (char *)to, size) && !holds(PEER, (char *)to, size)) || !holds(DEVICE, (char *)from, size)) return CUDA_ERROR_INVALID_VALUE;
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

CUresult cuCtxSynchronize(void) {
	BOUND;
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

// No stream records what is queued. A test may have all of them say that they do.
int cuFakeCapturing;

CUresult cuStreamIsCapturing(CUstream s, CUstreamCaptureStatus *status) {
	*status = cuFakeCapturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
	return stream(s);
}

CUresult cuEventDestroy(CUevent e) {
	free(e);
	return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *m, const void *image) {
	BOUND;
	module loaded = {TAG};
	CUresult result = load_module(&loaded, image);
	if (result) return result;
	*m = malloc(sizeof loaded);
	*(module *)*m = loaded;
	return CUDA_SUCCESS;
}

// A module's handle must be one of ours.
static CUresult mine(CUmodule m) { return m && ((module *)m)->tag == TAG ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; }

CUresult cuModuleUnload(CUmodule m) {
	BOUND;
	if (mine(m)) return mine(m);
	unload_module((module *)m);
	free(m);
	return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
	BOUND;
	return mine(m) ? mine(m) : find_function(f, (module *)m, name);
}

// Without this attribute, launches of a function may ask for 48 KiB of shared memory.
enum { MOST_SHARED = 227 << 10, USUAL_SHARED = 48 << 10, SHARING = 1024 };
static struct {
	CUfunction function;
	unsigned bytes;
} sharing[SHARING];

CUresult cuFuncSetAttribute(CUfunction f, CUfunction_attribute a, int value) {
	BOUND;
	if (!f || a != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > MOST_SHARED) return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&lock);
	int i = 0;
	while (i < SHARING && sharing[i].function && sharing[i].function != f) i++;
	if (i < SHARING) sharing[i].function = f, sharing[i].bytes = value;
	pthread_mutex_unlock(&lock);
	return i < SHARING ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static unsigned shared_limit(CUfunction f) {
	pthread_mutex_lock(&lock);
	unsigned limit = USUAL_SHARED;
	for (int i = 0; i < SHARING && sharing[i].function; i++)
		if (sharing[i].function == f) limit = sharing[i].bytes;
	pthread_mutex_unlock(&lock);
	return limit;
}

// The stream may be NULL, the legacy stream: ONNX Runtime has no other on the CPU, which computes for this card.
CUresult cuLaunchKernel(CUfunction f, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned height, unsigned depth, unsigned shared,
	CUstream s, void **arguments, void **extra) {
	BOUND;
	if (s && stream(s)) return CUDA_ERROR_INVALID_HANDLE;
	if (!x || !y || !z || !threads || threads > 1024 || height != 1 || depth != 1 || shared > shared_limit(f) || extra) return CUDA_ERROR_INVALID_VALUE;
	return launch_function(f, x, y, z, threads, shared, arguments);
}
