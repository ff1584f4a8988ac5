// The fields of structures after their first, the uint32_t version: X(name, result, parameters...). slots_test.go
// compares the lists with the header.

// ONNX Runtime calls these of a custom operator, to learn about it and to run its nodes.
#define ORT_CUSTOM_OP(X) \
	X(CreateKernel, void *, const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *) \
	X(GetName, const char *, const OrtCustomOp *) \
	X(GetExecutionProviderType, const char *, const OrtCustomOp *) \
	X(GetInputType, ONNXTensorElementDataType, const OrtCustomOp *, size_t) \
	X(GetInputTypeCount, size_t, const OrtCustomOp *) \
	X(GetOutputType, ONNXTensorElementDataType, const OrtCustomOp *, size_t) \
	X(GetOutputTypeCount, size_t, const OrtCustomOp *) \
	X(KernelCompute, void, void *, OrtKernelContext *) \
	X(KernelDestroy, void, void *) \
	X(GetInputCharacteristic, OrtCustomOpInputOutputCharacteristic, const OrtCustomOp *, size_t) \
	X(GetOutputCharacteristic, OrtCustomOpInputOutputCharacteristic, const OrtCustomOp *, size_t) \
	X(GetInputMemoryType, OrtMemType, const OrtCustomOp *, size_t) \
	X(GetVariadicInputMinArity, int, const OrtCustomOp *) \
	X(GetVariadicInputHomogeneity, int, const OrtCustomOp *) \
	X(GetVariadicOutputMinArity, int, const OrtCustomOp *) \
	X(GetVariadicOutputHomogeneity, int, const OrtCustomOp *) \
	X(CreateKernelV2, OrtStatus *, const OrtCustomOp *, const OrtApi *, const OrtKernelInfo *, void **) \
	X(KernelComputeV2, OrtStatus *, void *, OrtKernelContext *) \
	X(InferOutputShapeFn, OrtStatus *, const OrtCustomOp *, OrtShapeInferContext *) \
	X(GetStartVersion, int, const OrtCustomOp *) \
	X(GetEndVersion, int, const OrtCustomOp *) \
	X(GetMayInplace, size_t, int **, int **) \
	X(ReleaseMayInplace, void, int *, int *) \
	X(GetAliasMap, size_t, int **, int **) \
	X(ReleaseAliasMap, void, int *, int *)

// An allocator has more fields at its end.
#define ORT_ALLOCATOR(X) \
	X(Alloc, void *, OrtAllocator *, size_t) \
	X(Free, void, OrtAllocator *, void *) \
	X(Info, const OrtMemoryInfo *, const OrtAllocator *) \
	X(Reserve, void *, OrtAllocator *, size_t) \
	X(GetStats, OrtStatus *, const OrtAllocator *, OrtKeyValuePairs **) \
	X(AllocOnStream, void *, OrtAllocator *, size_t, OrtSyncStream *)
