package ort

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "ort.h"

const void *const *ort_table;
static const char *ort_version = "";

typedef struct {
	const void *const *(*GetApi)(uint32_t);
	const char *(*GetVersionString)(void);
} ort_api_base;

enum { ORT_OPENED, ORT_NO_LIBRARY, ORT_NO_ENTRY, ORT_OLD };

// ort_open keeps the library open for the rest of the process: its threads may outlive the environment.
static int ort_open(const char *path, const char **detail) {
	void *lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	if (!lib) {
		*detail = dlerror();
		return ORT_NO_LIBRARY;
	}
	ort_api_base *(*get)(void) = (ort_api_base * (*)(void)) dlsym(lib, "OrtGetApiBase");
	if (!get) {
		dlclose(lib);
		return ORT_NO_ENTRY;
	}
	const void *const *table = get()->GetApi(ORT_API_VERSION);
	*detail = get()->GetVersionString(); // a constant of the library, which therefore stays open
	if (!table) return ORT_OLD;
	ort_table = table;
	ort_version = *detail;
	return ORT_OPENED;
}

// ort_preload opens a library so that others find it by its name, and returns why it could not.
static const char *ort_preload(const char *path) { return dlopen(path, RTLD_LAZY | RTLD_GLOBAL) ? NULL : dlerror(); }

static const char *ort_get_version(void) { return ort_version; }
static const char *ort_message(OrtStatus *s) { return ORT(GetErrorMessage)(s); }
static void ort_release_status(OrtStatus *s) { ORT(ReleaseStatus)(s); }

static OrtStatus *ort_memory_info(const char *name, int type, int id, OrtMemoryInfo **out) {
	return ORT(CreateMemoryInfo)(name, type, id, OrtMemTypeDefault, out);
}
static void ort_release_info(OrtMemoryInfo *i) { ORT(ReleaseMemoryInfo)(i); }

// An address is an integer here: on a GPU it is no pointer of this process.
static OrtStatus *ort_new_value(OrtMemoryInfo *info, uintptr_t mem, size_t bytes, const int64_t *shape, size_t rank,
                                int type, OrtValue **out) {
	return ORT(CreateTensorWithDataAsOrtValue)(info, (void *)mem, bytes, shape, rank, type, out);
}
static OrtStatus *ort_value_data(OrtValue *v, uintptr_t *out) { return ORT(GetTensorMutableData)(v, (void **)out); }
static void ort_release_value(OrtValue *v) { ORT(ReleaseValue)(v); }

static OrtStatus *ort_new_binding(OrtSession *s, OrtIoBinding **out) { return ORT(CreateIoBinding)(s, out); }
static void ort_release_binding(OrtIoBinding *b) { ORT(ReleaseIoBinding)(b); }
static OrtStatus *ort_bind(OrtIoBinding *b, int output, const char *name, const OrtValue *v) {
	return output ? ORT(BindOutput)(b, name, v) : ORT(BindInput)(b, name, v);
}
static OrtStatus *ort_bind_place(OrtIoBinding *b, const char *name, const OrtMemoryInfo *i) {
	return ORT(BindOutputToDevice)(b, name, i);
}
// ort_bound gets the outputs of the last run in the order in which they were first bound. The caller frees the list.
static OrtStatus *ort_bound(const OrtIoBinding *b, OrtValue ***out, size_t *n) {
	OrtAllocator *a;
	OrtStatus *st = ORT(GetAllocatorWithDefaultOptions)(&a);
	return st ? st : ORT(GetBoundOutputValues)(b, a, out, n);
}
static OrtStatus *ort_run(OrtSession *s, const OrtRunOptions *o, const OrtIoBinding *b) {
	return ORT(RunWithBinding)(s, o, b);
}

// ort_stats finds one figure of a session's allocator; 0 where the allocator does not keep it.
static OrtStatus *ort_stats(OrtSession *s, OrtMemoryInfo *info, const char *key, int64_t *out) {
	OrtAllocator *a;
	OrtStatus *st = ORT(CreateAllocator)(s, info, &a);
	if (st) return st;
	OrtKeyValuePairs *pairs;
	st = ORT(AllocatorGetStats)(a, &pairs);
	if (!st) {
		const char *const *keys, *const *values;
		size_t n;
		ORT(GetKeyValuePairs)(pairs, &keys, &values, &n);
		*out = 0;
		for (size_t i = 0; i < n; i++)
			if (!strcmp(keys[i], key)) *out = atoll(values[i]);
		ORT(ReleaseKeyValuePairs)(pairs);
	}
	ORT(ReleaseAllocator)(a);
	return st;
}

// ort_pinned returns a session's allocator of pinned memory. It lives until it is released, longer than the session if
// need be.
static OrtStatus *ort_pinned(OrtSession *s, int device, OrtAllocator **out) {
	OrtMemoryInfo *info;
	OrtStatus *st = ORT(CreateMemoryInfo)(CUDA_PINNED, OrtArenaAllocator, device, OrtMemTypeDefault, &info);
	if (st) return st;
	st = ORT(CreateAllocator)(s, info, out);
	ORT(ReleaseMemoryInfo)(info);
	return st;
}
static void ort_release_allocator(OrtAllocator *a) { ORT(ReleaseAllocator)(a); }

// The options are onnxruntime_go's. Its own way sets strings only, and a stream as a string means the NULL stream.
static OrtStatus *ort_cuda_stream(void *options, uintptr_t stream) {
	return ORT(UpdateCUDAProviderOptionsWithValue)(options, "user_compute_stream", (void *)stream);
}
static OrtStatus *ort_deterministic(void *options) { return ORT(SetDeterministicCompute)(options, true); }

static OrtStatus *ort_count(OrtSession *s, int output, size_t *out) {
	return output ? ORT(SessionGetOutputCount)(s, out) : ORT(SessionGetInputCount)(s, out);
}
static OrtStatus *ort_name(OrtSession *s, int output, size_t i, char **out) {
	OrtAllocator *a;
	OrtStatus *st = ORT(GetAllocatorWithDefaultOptions)(&a);
	if (st) return st;
	return output ? ORT(SessionGetOutputName)(s, i, a, out) : ORT(SessionGetInputName)(s, i, a, out);
}
static OrtStatus *ort_free(void *p) {
	OrtAllocator *a;
	OrtStatus *st = ORT(GetAllocatorWithDefaultOptions)(&a);
	return st ? st : ORT(AllocatorFree)(a, p);
}
static OrtStatus *ort_type_info(OrtSession *s, int output, size_t i, OrtTypeInfo **out) {
	return output ? ORT(SessionGetOutputTypeInfo)(s, i, out) : ORT(SessionGetInputTypeInfo)(s, i, out);
}
// ort_tensor_info sets *out to NULL for a value that is not a tensor.
static OrtStatus *ort_tensor_info(OrtTypeInfo *t, const OrtTensorTypeAndShapeInfo **out, int *type, size_t *rank) {
	OrtStatus *st = ORT(CastTypeInfoToTensorInfo)(t, out);
	if (st || !*out) return st;
	if ((st = ORT(GetTensorElementType)(*out, type))) return st;
	return ORT(GetDimensionsCount)(*out, rank);
}
static OrtStatus *ort_dimensions(const OrtTensorTypeAndShapeInfo *t, int64_t *sizes, const char **symbols, size_t rank) {
	OrtStatus *st = ORT(GetDimensions)(t, sizes, rank);
	return st ? st : ORT(GetSymbolicDimensions)(t, symbols, rank);
}
static OrtStatus *ort_value_info(const OrtValue *v, OrtTensorTypeAndShapeInfo **out, int *type, size_t *rank) {
	OrtStatus *st = ORT(GetTensorTypeAndShape)(v, out);
	if (st || (st = ORT(GetTensorElementType)(*out, type))) return st;
	return ORT(GetDimensionsCount)(*out, rank);
}
static OrtStatus *ort_sizes(const OrtTensorTypeAndShapeInfo *t, int64_t *sizes, size_t rank) {
	return ORT(GetDimensions)(t, sizes, rank);
}
static void ort_release_info_of(OrtTensorTypeAndShapeInfo *t) { ORT(ReleaseTensorTypeAndShapeInfo)(t); }
static void ort_release_type_info(OrtTypeInfo *t) { ORT(ReleaseTypeInfo)(t); }
*/
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// The names below let files without C refer to the library's objects.
type (
	cBinding    = C.OrtIoBinding
	cMemoryInfo = C.OrtMemoryInfo
	cRunOptions = C.OrtRunOptions
	cSession    = C.OrtSession
	cValue      = C.OrtValue
)

// elementTypes gives the library's number of an element type.
var elementTypes = map[manifest.DType]C.int{
	manifest.F32:  C.ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
	manifest.F64:  C.ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE,
	manifest.F16:  C.ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16,
	manifest.BF16: C.ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16,
	manifest.I32:  C.ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32,
	manifest.I64:  C.ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
	manifest.U8:   C.ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8,
	manifest.Bool: C.ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL,
}

// openLibrary loads the library and takes its function table. The process has only one table: the dynamic loader gives
// onnxruntime_go, which opens the same path, the same library.
func openLibrary(path string) error {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	var detail *C.char
	switch C.ort_open(p, &detail) {
	case C.ORT_OPENED:
		return nil
	case C.ORT_NO_ENTRY:
		return errors.New("not an ONNX Runtime library: it has no OrtGetApiBase")
	case C.ORT_OLD:
		return fmt.Errorf("ONNX Runtime %s lacks API version %d: 1.%d or later is needed",
			C.GoString(detail), C.ORT_API_VERSION, C.ORT_API_VERSION)
	default:
		return errors.New(C.GoString(detail))
	}
}

// preload opens a library for other libraries that need it by its name. It stays open.
func preload(path string) error {
	p := C.CString(path)
	defer C.free(unsafe.Pointer(p))
	if reason := C.ort_preload(p); reason != nil {
		return errors.New(C.GoString(reason))
	}
	return nil
}

func libraryVersion() string { return C.GoString(C.ort_get_version()) }

// check turns a status into an error and releases it.
func check(s *C.OrtStatus) error {
	if s == nil {
		return nil
	}
	defer C.ort_release_status(s)
	return classify(C.GoString(C.ort_message(s)))
}

func newMemoryInfo(p Place) (*cMemoryInfo, error) { return newInfo(p, C.OrtDeviceAllocator) }

func newInfo(p Place, allocator C.int) (*cMemoryInfo, error) {
	name, id := C.CString("Cpu"), 0
	if p != Host {
		name, id = C.CString(C.CUDA_MEMORY), int(p)
	}
	defer C.free(unsafe.Pointer(name))
	var out *cMemoryInfo
	return out, check(C.ort_memory_info(name, allocator, C.int(id), &out))
}

// pinned keeps a session's allocator of pinned memory on a GPU until release.
func pinned(s *cSession, device Place) (release func(), err error) {
	var a *C.OrtAllocator
	if err := check(C.ort_pinned(s, C.int(device), &a)); err != nil {
		return nil, err
	}
	return func() { C.ort_release_allocator(a) }, nil
}

func releaseInfo(i *cMemoryInfo) { C.ort_release_info(i) }

// newValue creates a value over size bytes, which must be at least as many as dtype and shape require.
func newValue(info *cMemoryInfo, address uintptr, size int, dtype manifest.DType, shape []int64) (*cValue, error) {
	data := C.uintptr_t(address)
	var out *cValue
	err := check(C.ort_new_value(info, data, C.size_t(size), (*C.int64_t)(unsafe.SliceData(shape)),
		C.size_t(len(shape)), elementTypes[dtype], &out))
	if err != nil {
		return nil, err
	}
	// Everything relies on the value being a view. If the library copied the memory, training would use stale data.
	var got C.uintptr_t
	if err = check(C.ort_value_data(out, &got)); err == nil && got != data {
		err = errors.New("the library copied the memory instead of using it in place")
	}
	if err != nil {
		C.ort_release_value(out)
		return nil, err
	}
	return out, nil
}

func releaseValue(v *cValue) { C.ort_release_value(v) }

func newBinding(s *cSession) (*cBinding, error) {
	var out *cBinding
	return out, check(C.ort_new_binding(s, &out))
}

func releaseBinding(b *cBinding) { C.ort_release_binding(b) }

func bind(b *cBinding, side side, name string, v *cValue) error {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return check(C.ort_bind(b, C.int(side), n, v))
}

func bindPlace(b *cBinding, name string, info *cMemoryInfo) error {
	n := C.CString(name)
	defer C.free(unsafe.Pointer(n))
	return check(C.ort_bind_place(b, n, info))
}

// boundValues returns the outputs of the last run, in the order in which they were first bound.
func boundValues(b *cBinding) ([]*cValue, error) {
	var list **cValue
	var n C.size_t
	if err := check(C.ort_bound(b, &list, &n)); err != nil || n == 0 {
		return nil, err
	}
	values := append([]*cValue(nil), unsafe.Slice(list, n)...)
	return values, check(C.ort_free(unsafe.Pointer(list)))
}

// describeValue returns the type and the shape of a tensor, and the address of its elements.
func describeValue(v *cValue) (dtype manifest.DType, shape []int, address uintptr, err error) {
	var info *C.OrtTensorTypeAndShapeInfo
	var element C.int
	var rank C.size_t
	if err = check(C.ort_value_info(v, &info, &element, &rank)); err != nil {
		return "", nil, 0, err
	}
	defer C.ort_release_info_of(info)
	sizes := make([]int64, rank)
	if err = check(C.ort_sizes(info, (*C.int64_t)(unsafe.SliceData(sizes)), rank)); err != nil {
		return "", nil, 0, err
	}
	for _, n := range sizes {
		shape = append(shape, int(n))
	}
	var data C.uintptr_t
	err = check(C.ort_value_data(v, &data))
	return elementType(element), shape, uintptr(data), err
}

// elementType is "" for a type that is not supported.
func elementType(number C.int) manifest.DType {
	for dtype, n := range elementTypes {
		if n == number {
			return dtype
		}
	}
	return ""
}

func cudaStream(options unsafe.Pointer, stream uintptr) error {
	return check(C.ort_cuda_stream(options, C.uintptr_t(stream)))
}

func stats(s *cSession, info *cMemoryInfo, key string) (int, error) {
	k := C.CString(key)
	defer C.free(unsafe.Pointer(k))
	var n C.int64_t
	err := check(C.ort_stats(s, info, k, &n))
	return int(n), err
}

func deterministic(options unsafe.Pointer) error { return check(C.ort_deterministic(options)) }

func run(s *cSession, o *cRunOptions, b *cBinding) error { return check(C.ort_run(s, o, b)) }

// describeAll lists a session's inputs or outputs.
func describeAll(s *cSession, side side) ([]ValueInfo, error) {
	var n C.size_t
	if err := check(C.ort_count(s, C.int(side), &n)); err != nil {
		return nil, err
	}
	infos := make([]ValueInfo, n)
	for i := range infos {
		var err error
		if infos[i], err = describe(s, side, C.size_t(i)); err != nil {
			return nil, err
		}
	}
	return infos, nil
}

func describe(s *cSession, side side, i C.size_t) (ValueInfo, error) {
	var v ValueInfo
	var name *C.char
	if err := check(C.ort_name(s, C.int(side), i, &name)); err != nil {
		return v, err
	}
	v.Name = C.GoString(name)
	if err := check(C.ort_free(unsafe.Pointer(name))); err != nil {
		return v, err
	}

	var info *C.OrtTypeInfo
	if err := check(C.ort_type_info(s, C.int(side), i, &info)); err != nil {
		return v, err
	}
	defer C.ort_release_type_info(info)
	var tensor *C.OrtTensorTypeAndShapeInfo // lives as long as info, like the symbols
	var element C.int
	var rank C.size_t
	if err := check(C.ort_tensor_info(info, &tensor, &element, &rank)); err != nil {
		return v, err
	}
	if tensor == nil {
		return v, fmt.Errorf("%s %q is not a tensor", side, v.Name)
	}
	if v.DType = elementType(element); v.DType == "" {
		return v, fmt.Errorf("%s %q has an element type that is not supported (ONNX number %d)", side, v.Name, element)
	}

	sizes := make([]int64, rank)
	symbols := make([]*C.char, rank)
	err := check(C.ort_dimensions(tensor, (*C.int64_t)(unsafe.SliceData(sizes)), unsafe.SliceData(symbols), rank))
	if err != nil {
		return v, err
	}
	v.Shape = make(manifest.Shape, rank)
	for i := range v.Shape {
		// A symbol has no size. The library's -1 means "unknown", so it must not be used for one.
		if v.Shape[i].Symbol = C.GoString(symbols[i]); v.Shape[i].Symbol == "" {
			v.Shape[i].Size = int(sizes[i])
		}
	}
	return v, nil
}
