// Every function of struct OrtApi that this package calls: X(name, slot, result, parameters...).
//
// OrtApi is a table of function pointers that only ever grows at its end, so a slot stays valid for every
// later version of the library. Calling by slot spares the build the library's header. slots_test.go
// includes this list together with that header and compares slots and types.
#define ORT_SLOTS(X) \
	X(GetErrorMessage, 2, const char *, const OrtStatus *) \
	X(SessionGetInputCount, 30, OrtStatus *, const OrtSession *, size_t *) \
	X(SessionGetOutputCount, 31, OrtStatus *, const OrtSession *, size_t *) \
	X(SessionGetInputTypeInfo, 33, OrtStatus *, const OrtSession *, size_t, OrtTypeInfo **) \
	X(SessionGetOutputTypeInfo, 34, OrtStatus *, const OrtSession *, size_t, OrtTypeInfo **) \
	X(SessionGetInputName, 36, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **) \
	X(SessionGetOutputName, 37, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **) \
	X(CreateTensorWithDataAsOrtValue, 49, OrtStatus *, const OrtMemoryInfo *, void *, size_t, const int64_t *, size_t, ONNXTensorElementDataType, OrtValue **) \
	X(GetTensorMutableData, 51, OrtStatus *, OrtValue *, void **) \
	X(CastTypeInfoToTensorInfo, 55, OrtStatus *, const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **) \
	X(GetTensorElementType, 60, OrtStatus *, const OrtTensorTypeAndShapeInfo *, ONNXTensorElementDataType *) \
	X(GetDimensionsCount, 61, OrtStatus *, const OrtTensorTypeAndShapeInfo *, size_t *) \
	X(GetDimensions, 62, OrtStatus *, const OrtTensorTypeAndShapeInfo *, int64_t *, size_t) \
	X(GetSymbolicDimensions, 63, OrtStatus *, const OrtTensorTypeAndShapeInfo *, const char **, size_t) \
	X(CreateMemoryInfo, 68, OrtStatus *, const char *, OrtAllocatorType, int, OrtMemType, OrtMemoryInfo **) \
	X(AllocatorFree, 76, OrtStatus *, OrtAllocator *, void *) \
	X(GetAllocatorWithDefaultOptions, 78, OrtStatus *, OrtAllocator **) \
	X(ReleaseStatus, 93, void, OrtStatus *) \
	X(ReleaseMemoryInfo, 94, void, OrtMemoryInfo *) \
	X(ReleaseValue, 96, void, OrtValue *) \
	X(ReleaseTypeInfo, 98, void, OrtTypeInfo *) \
	X(CreateAllocator, 131, OrtStatus *, const OrtSession *, const OrtMemoryInfo *, OrtAllocator **) \
	X(ReleaseAllocator, 132, void, OrtAllocator *) \
	X(RunWithBinding, 133, OrtStatus *, OrtSession *, const OrtRunOptions *, const OrtIoBinding *) \
	X(CreateIoBinding, 134, OrtStatus *, OrtSession *, OrtIoBinding **) \
	X(ReleaseIoBinding, 135, void, OrtIoBinding *) \
	X(BindInput, 136, OrtStatus *, OrtIoBinding *, const char *, const OrtValue *) \
	X(UpdateCUDAProviderOptionsWithValue, 263, OrtStatus *, OrtCUDAProviderOptionsV2 *, const char *, void *) \
	X(SetDeterministicCompute, 273, OrtStatus *, OrtSessionOptions *, bool) \
	X(GetKeyValuePairs, 298, void, const OrtKeyValuePairs *, const char *const **, const char *const **, size_t *) \
	X(ReleaseKeyValuePairs, 300, void, OrtKeyValuePairs *) \
	X(AllocatorGetStats, 319, OrtStatus *, const OrtAllocator *, OrtKeyValuePairs **) \
	X(BindOutput, 137, OrtStatus *, OrtIoBinding *, const char *, const OrtValue *)

// The constants of the library that api.go uses, held against the header in the same way.
#define ORT_CONSTANTS(X) \
	X(ORT_API_VERSION, 29) \
	X(OrtDeviceAllocator, 0) \
	X(OrtMemTypeDefault, 0) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 2) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 6) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 7) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 9) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 10) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 11) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 16)
