package nccl

/*
#cgo LDFLAGS: -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct { char bytes[128]; } id; // ncclUniqueId
typedef struct ncclComm *comm;

// A range is what a collective works on, in place.
typedef struct {
	uint64_t address, elements;
	int type; // ncclDataType_t
} range_t;

// The functions of nccl.h that are used, with their arguments. Each returns an ncclResult_t, which is 0 on success.
#define CALLS(CALL) \
	CALL(GetVersion, int *version) \
	CALL(GetUniqueId, id *made) \
	CALL(CommInitRank, comm *made, int size, id of, int rank) \
	CALL(CommGetAsyncError, comm c, int *result) \
	CALL(CommAbort, comm c) \
	CALL(CommDestroy, comm c) \
	CALL(GroupStart, void) \
	CALL(GroupEnd, void) \
	CALL(AllReduce, const void *from, void *to, size_t elements, int type, int operation, comm c, void *stream) \
	CALL(Broadcast, const void *from, void *to, size_t elements, int type, int root, comm c, void *stream)

typedef struct {
#define FIELD(name, ...) int (*name)(__VA_ARGS__);
	CALLS(FIELD)
	const char *(*GetErrorString)(int result);
	const char *(*GetLastError)(comm c);
} nccl;

// nccl_open returns the library's file, or NULL and why it cannot be loaded, or which function it lacks.
static const char *nccl_open(const char *name, nccl *n, const char **problem, const char **lacks) {
	void *lib = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map;
	if (!lib || dlinfo(lib, RTLD_DI_LINKMAP, &map)) {
		*problem = dlerror();
		return NULL;
	}
#define FIND(name, ...) \
	if (!(*(void **)&n->name = dlsym(lib, "nccl" #name))) *lacks = "nccl" #name;
	CALLS(FIND)
	FIND(GetErrorString)
	FIND(GetLastError)
	if (!*lacks) return map->l_name;
	dlclose(lib);
	return NULL;
}

static int nccl_version(const nccl *n, int *version) { return n->GetVersion(version); }
static int nccl_id(const nccl *n, void *made) { return n->GetUniqueId(made); }
static int nccl_join(const nccl *n, comm *made, int size, const void *of, int rank) { return n->CommInitRank(made, size, *(const id *)of, rank); }
static int nccl_async_error(const nccl *n, comm c, int *result) { return n->CommGetAsyncError(c, result); }
static int nccl_abort(const nccl *n, comm c) { return n->CommAbort(c); }
static int nccl_destroy(const nccl *n, comm c) { return n->CommDestroy(c); }
static const char *nccl_message(const nccl *n, int result) { return n->GetErrorString(result); }
static const char *nccl_last(const nccl *n) { return n->GetLastError(NULL); }

// nccl_all queues a collective for each range, all of them as one group, and sets *call to the one that fails. A group
// belongs to a thread, so it begins and ends here.
static int nccl_all(const nccl *n, comm c, int broadcast, const range_t *ranges, int count, uintptr_t stream, const char **call) {
	enum { SUM = 0, ROOT = 0 };
	int result = n->GroupStart();
	*call = "ncclGroupStart";
	if (result) return result;
	for (const range_t *r = ranges; r < ranges + count && !result; r++) {
		void *at = (void *)(uintptr_t)r->address;
		*call = broadcast ? "ncclBroadcast" : "ncclAllReduce";
		result = broadcast ? n->Broadcast(at, at, r->elements, r->type, ROOT, c, (void *)stream)
		                   : n->AllReduce(at, at, r->elements, r->type, SUM, c, (void *)stream);
	}
	const int ended = n->GroupEnd(); // also after an error, which ends the group for the thread
	if (result || !ended) return result;
	*call = "ncclGroupEnd";
	return ended;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"
)

// This is the only file of the package with C code.

// library has the functions of a loaded NCCL.
type library struct{ calls C.nccl }

// comm is an ncclComm_t.
type comm = C.comm

func open(name string) (*Library, error) {
	runtime.LockOSThread() // dlerror is per thread
	defer runtime.UnlockOSThread()
	cname := C.CString(name)
	defer C.free(unsafe.Pointer(cname))
	l := new(Library)
	var problem, lacks *C.char
	path := C.nccl_open(cname, &l.calls.calls, &problem, &lacks)
	switch {
	case lacks != nil:
		return nil, fmt.Errorf("%s has no %s", name, C.GoString(lacks))
	case path == nil:
		return nil, errors.New(C.GoString(problem))
	}
	l.path = C.GoString(path)
	var code C.int
	err := l.calls.check("ncclGetVersion", C.nccl_version(&l.calls.calls, &code))
	l.code = int(code)
	return l, err
}

func (l *library) id() (made ID, err error) {
	return made, l.check("ncclGetUniqueId", C.nccl_id(&l.calls, unsafe.Pointer(&made)))
}

func (l *library) join(id ID, rank, size int) (c comm, err error) {
	return c, l.check("ncclCommInitRank",
		C.nccl_join(&l.calls, &c, C.int(size), unsafe.Pointer(&id), C.int(rank)))
}

// all queues a collective for each of the ranges as one group.
func (l *library) all(c comm, broadcast bool, stream uintptr, ranges []Range) error {
	if len(ranges) == 0 {
		return nil
	}
	list := make([]C.range_t, len(ranges))
	for i, r := range ranges {
		list[i] = C.range_t{address: C.uint64_t(r.Address), elements: C.uint64_t(r.Elements), _type: C.int(r.DType)}
	}
	var root C.int
	if broadcast {
		root = 1
	}
	var call *C.char
	result := C.nccl_all(&l.calls, c, root, &list[0], C.int(len(list)), C.uintptr_t(stream), &call)
	return l.check(C.GoString(call), result)
}

func (l *library) asyncError(c comm) error {
	var result C.int
	if err := l.check("ncclCommGetAsyncError", C.nccl_async_error(&l.calls, c, &result)); err != nil {
		return err
	}
	return l.check("NCCL, at work", result)
}

func (l *library) abort(c comm) error { return l.check("ncclCommAbort", C.nccl_abort(&l.calls, c)) }

func (l *library) destroy(c comm) error {
	return l.check("ncclCommDestroy", C.nccl_destroy(&l.calls, c))
}

// check returns an error for the result of a call, with what NCCL says about it. NCCL keeps its last message for the
// whole process.
func (l *library) check(call string, result C.int) error {
	if result == 0 {
		return nil
	}
	text := C.GoString(C.nccl_message(&l.calls, result))
	if last := strings.Join(strings.Fields(C.GoString(C.nccl_last(&l.calls))), " "); last != "" {
		text += ": " + last
	}
	return fmt.Errorf("%s: %s", call, text)
}
