// An NCCL without a GPU, for tests: ranks are processes or threads of one machine that share a file in /dev/shm, and the CPU sums, on
// memory that the host can read, such as that of gpu/cuda/fakecuda. As that driver does, a call does all its work at once, whatever its
// stream is; so it waits for the other ranks. Sums are made in f32 in the order of the ranks, and those of bf16 are rounded once.
//
// It refuses what the real one refuses, and, unlike that, operations that are not the same on all ranks.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { SUCCESS = 0, SYSTEM_ERROR = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5 };
enum { F32 = 7, BF16 = 9, SUM = 0 };
enum { RANKS = 16, CHUNK = 1 << 18, QUEUE = 1024, VERSION = 22809 };

typedef struct {
	char bytes[128];
} id;

typedef struct { // an operation
	int broadcast, type;
	uint64_t elements;
} what;

typedef struct { // what a rank shows to the others
	_Atomic uint64_t met;
	what now;
	char data[CHUNK];
} place;

typedef struct ncclComm {
	place *places;
	int rank, size, error;
	uint64_t met; // how often it has waited for the others
	_Atomic int aborted, used; // used: operations that are queued or run
} comm;

typedef struct {
	comm *c;
	what now;
	char *memory;
} operation;

static char last[256]; // the last error, of the whole process
static __thread operation queue[QUEUE];
static __thread int depth, queued, refused;

static int fails(int result, const char *text) {
	snprintf(last, sizeof last, "%s", text);
	return result;
}

static void nap(void) { nanosleep(&(struct timespec){0, 20000}, NULL); }

// meet waits until all ranks have come here; it reports whether they have.
static int meet(comm *c) {
	atomic_store(&c->places[c->rank].met, ++c->met);
	for (int r = 0; r < c->size; r++)
		while (atomic_load(&c->places[r].met) < c->met) {
			if (atomic_load(&c->aborted)) return 0;
			nap();
		}
	return 1;
}

// agree reports whether all ranks do the same.
static int agree(comm *c, what now, int *same) {
	c->places[c->rank].now = now;
	if (!meet(c)) return 0;
	*same = 1;
	for (int r = 0; r < c->size; r++) {
		const what *w = &c->places[r].now;
		*same &= w->broadcast == now.broadcast && w->type == now.type && w->elements == now.elements;
	}
	return meet(c);
}

static float widened(uint16_t b) {
	float f;
	const uint32_t bits = (uint32_t)b << 16;
	memcpy(&f, &bits, sizeof f);
	return f;
}

static uint16_t rounded(float f) { // to the nearest, to even between two
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	if (f != f) return 0x7fff;
	return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static void sum(const comm *c, int type, void *to, size_t bytes) {
	const size_t size = type == F32 ? sizeof(float) : sizeof(uint16_t);
	for (size_t i = 0; i < bytes / size; i++) {
		float all = 0;
		for (int r = 0; r < c->size; r++) {
			const void *data = c->places[r].data;
			const float x = type == F32 ? ((const float *)data)[i] : widened(((const uint16_t *)data)[i]);
			all = r ? all + x : x;
		}
		if (type == F32)
			((float *)to)[i] = all;
		else
			((uint16_t *)to)[i] = rounded(all);
	}
}

// An operation that is aborted ends as if it were done, as on a GPU.
static int run(const operation *o) {
	comm *c = o->c;
	const uint64_t bytes = o->now.elements * (o->now.type == F32 ? sizeof(float) : sizeof(uint16_t));
	int same = 1;
	if (agree(c, o->now, &same) && same)
		for (uint64_t at = 0; at < bytes; at += CHUNK) {
			const size_t n = bytes - at < CHUNK ? bytes - at : CHUNK;
			memcpy(c->places[c->rank].data, o->memory + at, n);
			if (!meet(c)) break;
			if (o->now.broadcast)
				memcpy(o->memory + at, c->places[0].data, n);
			else
				sum(c, o->now.type, o->memory + at, n);
			if (!meet(c)) break;
		}
	if (!same) c->error = INVALID_USAGE;
	return same ? SUCCESS : fails(INVALID_USAGE, "the ranks have called for different operations");
}

// Outside of a group, an operation is one of its own.
int ncclGroupStart(void) {
	if (depth++ == 0) queued = 0, refused = SUCCESS;
	return SUCCESS;
}

int ncclGroupEnd(void) {
	if (depth == 0) return fails(INVALID_USAGE, "ncclGroupEnd: not in a group call.");
	if (--depth > 0) return refused;
	int result = refused;
	for (int i = 0; i < queued && !result; i++) result = run(&queue[i]);
	for (int i = 0; i < queued; i++) atomic_fetch_sub(&queue[i].c->used, 1); // an abort waits for all of the group
	return result;
}

static int queue_one(comm *c, int broadcast, const void *from, void *to, size_t elements, int type) {
	ncclGroupStart();
	if (!c || from != to || !to)
		refused = fails(INVALID_ARGUMENT, "only operations in place");
	else if (type != F32 && type != BF16)
		refused = fails(INVALID_ARGUMENT, "invalid type");
	else if (queued == QUEUE)
		refused = fails(INVALID_USAGE, "too many operations in a group");
	else {
		atomic_fetch_add(&c->used, 1);
		queue[queued++] = (operation){c, {broadcast, type, elements}, to};
	}
	return ncclGroupEnd();
}

int ncclAllReduce(const void *from, void *to, size_t elements, int type, int operation, comm *c, void *stream) {
	if (operation != SUM) return fails(INVALID_ARGUMENT, "only sums");
	return queue_one(c, 0, from, to, elements, type);
}

#ifndef WITHOUT_BROADCAST
int ncclBroadcast(const void *from, void *to, size_t elements, int type, int root, comm *c, void *stream) {
	if (root != 0) return fails(INVALID_ARGUMENT, "only from rank 0");
	return queue_one(c, 1, from, to, elements, type);
}
#endif

int ncclGetVersion(int *version) {
	*version = VERSION;
	return SUCCESS;
}

// The ID is the name of the shared file.
int ncclGetUniqueId(id *made) {
	static _Atomic int count;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	memset(made, 0, sizeof *made);
	snprintf(made->bytes, sizeof made->bytes, "/dev/shm/fake-nccl-%d-%d-%ld%09ld", (int)getpid(), atomic_fetch_add(&count, 1),
		(long)now.tv_sec, now.tv_nsec);
	return SUCCESS;
}

int ncclCommInitRank(comm **made, int size, id of, int rank) {
	char text[128];
	snprintf(text, sizeof text, "Invalid rank requested : %d/%d", rank, size);
	if (size < 1 || size > RANKS || rank < 0 || rank >= size) return fails(INVALID_ARGUMENT, text);
	const size_t bytes = size * sizeof(place);
	int file = open(of.bytes, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	void *shared = MAP_FAILED;
	if (file >= 0 && !ftruncate(file, bytes)) shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (file >= 0) close(file);
	if (shared == MAP_FAILED) return fails(SYSTEM_ERROR, strerror(errno));
	comm *c = calloc(1, sizeof *c);
	c->places = shared, c->size = size, c->rank = rank;
	meet(c);
	if (rank == 0) unlink(of.bytes);
	*made = c;
	return SUCCESS;
}

int ncclCommGetAsyncError(comm *c, int *result) {
	*result = c->error;
	return SUCCESS;
}

int ncclCommDestroy(comm *c) {
	munmap(c->places, c->size * sizeof(place));
	free(c);
	return SUCCESS;
}

int ncclCommAbort(comm *c) {
	atomic_store(&c->aborted, 1);
	while (atomic_load(&c->used)) nap();
	return ncclCommDestroy(c);
}

const char *ncclGetErrorString(int result) {
	switch (result) {
	case SUCCESS: return "no error";
	case SYSTEM_ERROR: return "unhandled system error";
	case INVALID_ARGUMENT: return "invalid argument";
	case INVALID_USAGE: return "invalid usage";
	default: return "unknown result code";
	}
}

const char *ncclGetLastError(comm *c) { return last; }
