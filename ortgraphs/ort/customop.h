// The fields of struct OrtCustomOp after its first, the uint32_t version: X(name, result, parameters...). ONNX Runtime
// calls them to learn about a custom operator and to run its nodes. slots_test.go compares the list with the header.
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
