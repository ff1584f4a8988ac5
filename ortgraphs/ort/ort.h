// The library's C interface, for the C code of this package.
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The names that the library has for CUDA: its provider, a GPU's memory, and pinned memory of the host.
#define CUDA_PROVIDER "CUDAExecutionProvider"
#define CUDA_MEMORY "Cuda"
#define CUDA_PINNED "CudaPinned"

// The library's types are opaque here, its enumerations plain integers.
typedef struct OrtAllocator OrtAllocator;
typedef struct OrtApi OrtApi;
typedef struct OrtArenaCfg OrtArenaCfg;
typedef struct OrtCUDAProviderOptionsV2 OrtCUDAProviderOptionsV2;
typedef struct OrtCustomOp OrtCustomOp;
typedef struct OrtCustomOpDomain OrtCustomOpDomain;
typedef struct OrtEnv OrtEnv;
typedef struct OrtIoBinding OrtIoBinding;
typedef struct OrtKernelContext OrtKernelContext;
typedef struct OrtKernelInfo OrtKernelInfo;
typedef struct OrtKeyValuePairs OrtKeyValuePairs;
typedef struct OrtMemoryInfo OrtMemoryInfo;
typedef struct OrtOpAttr OrtOpAttr;
typedef struct OrtRunOptions OrtRunOptions;
typedef struct OrtSession OrtSession;
typedef struct OrtSessionOptions OrtSessionOptions;
typedef struct OrtShapeInferContext OrtShapeInferContext;
typedef struct OrtStatus OrtStatus;
typedef struct OrtSyncStream OrtSyncStream;
typedef struct OrtTensorTypeAndShapeInfo OrtTensorTypeAndShapeInfo;
typedef struct OrtTypeInfo OrtTypeInfo;
typedef struct OrtValue OrtValue;
typedef int ONNXTensorElementDataType;
typedef int OrtAllocatorType;
typedef int OrtCustomOpInputOutputCharacteristic;
typedef int OrtErrorCode;
typedef int OrtLoggingLevel;
typedef int OrtMemType;
typedef int OrtOpAttrType;

#include "slots.h"

#define CONSTANT(name, value) enum { name = value };
ORT_CONSTANTS(CONSTANT)
#define DECLARE(name, slot, result, ...) \
	typedef result (*name##_fn)(__VA_ARGS__); \
	enum { name##_slot = slot };
ORT_SLOTS(DECLARE)

extern const void *const *ort_table; // struct OrtApi, constant once the library is open

#define ORT(name) ((name##_fn)ort_table[name##_slot])
