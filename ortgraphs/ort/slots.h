// Every function of struct OrtApi that this package calls: X(name, slot, result, parameters...).
//
// OrtApi is a table of function pointers that only ever grows at its end, so a slot stays valid for every
// later version of the library. Calling by slot spares the build the library's header. slots_test.go
// includes this list together with that header and compares slots and types.
#define ORT_SLOTS(X) \
	X(CreateStatus, 0, OrtStatus *, OrtErrorCode, const char *) \
	X(GetErrorMessage, 2, const char *, const OrtStatus *) \
	X(CreateEnv, 3, OrtStatus *, OrtLoggingLevel, const char *, OrtEnv **) \
	X(CreateCustomOpDomain, 26, OrtStatus *, const char *, OrtCustomOpDomain **) \
	X(CustomOpDomain_Add, 27, OrtStatus *, OrtCustomOpDomain *, const OrtCustomOp *) \
	X(AddCustomOpDomain, 28, OrtStatus *, OrtSessionOptions *, OrtCustomOpDomain *) \
	X(SessionGetInputCount, 30, OrtStatus *, const OrtSession *, size_t *) \
	X(SessionGetOutputCount, 31, OrtStatus *, const OrtSession *, size_t *) \
	X(SessionGetInputTypeInfo, 33, OrtStatus *, const OrtSession *, size_t, OrtTypeInfo **) \
	X(SessionGetOutputTypeInfo, 34, OrtStatus *, const OrtSession *, size_t, OrtTypeInfo **) \
	X(SessionGetInputName, 36, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **) \
	X(SessionGetOutputName, 37, OrtStatus *, const OrtSession *, size_t, OrtAllocator *, char **) \
	X(CreateTensorWithDataAsOrtValue, 49, OrtStatus *, const OrtMemoryInfo *, void *, size_t, const int64_t *, size_t, ONNXTensorElementDataType, OrtValue **) \
	X(GetTensorMutableData, 51, OrtStatus *, OrtValue *, void **) \
	X(CastTypeInfoToTensorInfo, 55, OrtStatus *, const OrtTypeInfo *, const OrtTensorTypeAndShapeInfo **) \
	X(CreateTensorTypeAndShapeInfo, 57, OrtStatus *, OrtTensorTypeAndShapeInfo **) \
	X(SetTensorElementType, 58, OrtStatus *, OrtTensorTypeAndShapeInfo *, ONNXTensorElementDataType) \
	X(SetDimensions, 59, OrtStatus *, OrtTensorTypeAndShapeInfo *, const int64_t *, size_t) \
	X(GetTensorElementType, 60, OrtStatus *, const OrtTensorTypeAndShapeInfo *, ONNXTensorElementDataType *) \
	X(GetDimensionsCount, 61, OrtStatus *, const OrtTensorTypeAndShapeInfo *, size_t *) \
	X(GetDimensions, 62, OrtStatus *, const OrtTensorTypeAndShapeInfo *, int64_t *, size_t) \
	X(GetSymbolicDimensions, 63, OrtStatus *, const OrtTensorTypeAndShapeInfo *, const char **, size_t) \
	X(GetTensorTypeAndShape, 65, OrtStatus *, const OrtValue *, OrtTensorTypeAndShapeInfo **) \
	X(CreateMemoryInfo, 68, OrtStatus *, const char *, OrtAllocatorType, int, OrtMemType, OrtMemoryInfo **) \
	X(AllocatorFree, 76, OrtStatus *, OrtAllocator *, void *) \
	X(GetAllocatorWithDefaultOptions, 78, OrtStatus *, OrtAllocator **) \
	X(KernelInfoGetAttribute_int64, 86, OrtStatus *, const OrtKernelInfo *, const char *, int64_t *) \
	X(KernelContext_GetInput, 90, OrtStatus *, const OrtKernelContext *, size_t, const OrtValue **) \
	X(KernelContext_GetOutput, 91, OrtStatus *, OrtKernelContext *, size_t, const int64_t *, size_t, OrtValue **) \
	X(ReleaseEnv, 92, void, OrtEnv *) \
	X(ReleaseStatus, 93, void, OrtStatus *) \
	X(ReleaseMemoryInfo, 94, void, OrtMemoryInfo *) \
	X(ReleaseValue, 96, void, OrtValue *) \
	X(ReleaseTypeInfo, 98, void, OrtTypeInfo *) \
	X(ReleaseTensorTypeAndShapeInfo, 99, void, OrtTensorTypeAndShapeInfo *) \
	X(ReleaseCustomOpDomain, 101, void, OrtCustomOpDomain *) \
	X(CreateAllocator, 131, OrtStatus *, const OrtSession *, const OrtMemoryInfo *, OrtAllocator **) \
	X(ReleaseAllocator, 132, void, OrtAllocator *) \
	X(RunWithBinding, 133, OrtStatus *, OrtSession *, const OrtRunOptions *, const OrtIoBinding *) \
	X(CreateIoBinding, 134, OrtStatus *, OrtSession *, OrtIoBinding **) \
	X(ReleaseIoBinding, 135, void, OrtIoBinding *) \
	X(BindInput, 136, OrtStatus *, OrtIoBinding *, const char *, const OrtValue *) \
	X(BindOutput, 137, OrtStatus *, OrtIoBinding *, const char *, const OrtValue *) \
	X(BindOutputToDevice, 138, OrtStatus *, OrtIoBinding *, const char *, const OrtMemoryInfo *) \
	X(GetBoundOutputValues, 140, OrtStatus *, const OrtIoBinding *, OrtAllocator *, OrtValue ***, size_t *) \
	X(ReleaseArenaCfg, 157, void, OrtArenaCfg *) \
	X(CreateArenaCfgV2, 164, OrtStatus *, const char *const *, const size_t *, size_t, OrtArenaCfg **) \
	X(UnregisterAllocator, 177, OrtStatus *, OrtEnv *, const OrtMemoryInfo *) \
	X(KernelContext_GetGPUComputeStream, 193, OrtStatus *, const OrtKernelContext *, void **) \
	X(KernelInfo_GetInputCount, 230, OrtStatus *, const OrtKernelInfo *, size_t *) \
	X(KernelContext_GetAllocator, 253, OrtStatus *, const OrtKernelContext *, const OrtMemoryInfo *, OrtAllocator **) \
	X(CreateAndRegisterAllocatorV2, 259, OrtStatus *, OrtEnv *, const char *, const OrtMemoryInfo *, const OrtArenaCfg *, const char *const *, const char *const *, size_t) \
	X(UpdateCUDAProviderOptionsWithValue, 263, OrtStatus *, OrtCUDAProviderOptionsV2 *, const char *, void *) \
	X(ShapeInferContext_GetAttribute, 269, OrtStatus *, const OrtShapeInferContext *, const char *, const OrtOpAttr **) \
	X(ShapeInferContext_SetOutputTypeShape, 270, OrtStatus *, const OrtShapeInferContext *, size_t, const OrtTensorTypeAndShapeInfo *) \
	X(ReadOpAttr, 272, OrtStatus *, const OrtOpAttr *, OrtOpAttrType, void *, size_t, size_t *) \
	X(SetDeterministicCompute, 273, OrtStatus *, OrtSessionOptions *, bool) \
	X(GetKeyValuePairs, 298, void, const OrtKeyValuePairs *, const char *const **, const char *const **, size_t *) \
	X(ReleaseKeyValuePairs, 300, void, OrtKeyValuePairs *) \
	X(AllocatorGetStats, 319, OrtStatus *, const OrtAllocator *, OrtKeyValuePairs **) \
	X(KernelContext_GetSyncStream, 423, OrtStatus *, const OrtKernelContext *, OrtSyncStream **)

// The constants of the library that this package uses, checked in the same way.
#define ORT_CONSTANTS(X) \
	X(ORT_API_VERSION, 29) \
	X(ORT_FAIL, 1) \
	X(ORT_OP_ATTR_INT, 1) \
	X(INPUT_OUTPUT_REQUIRED, 0) \
	X(INPUT_OUTPUT_VARIADIC, 2) \
	X(ORT_LOGGING_LEVEL_FATAL, 4) \
	X(OrtDeviceAllocator, 0) \
	X(OrtArenaAllocator, 1) \
	X(OrtMemTypeDefault, 0) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED, 0) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, 1) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, 2) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, 6) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, 7) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, 9) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, 10) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, 11) \
	X(ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, 16)
