package ort

import (
	"errors"
	"fmt"
	"testing"
)

// The messages are ONNX Runtime's own, from runs and bug reports.
func TestClassify(t *testing.T) {
	for _, tt := range []struct {
		name    string
		message string
		want    error
	}{
		{"arena, memory full",
			"Non-zero status code returned while running Mul node. Name:'Mul_8702' Status Message: " +
				"/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:368 void* " +
				"onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*, bool, " +
				"onnxruntime::WaitNotificationFn) Failed to allocate memory for requested buffer of size 2830172160",
			ErrOutOfMemory},
		{"arena, at its cap",
			"Non-zero status code returned while running Expand node. Name:'node_expand_218' Status Message: " +
				"/onnxruntime_src/onnxruntime/core/framework/bfc_arena.cc:359 void* " +
				"onnxruntime::BFCArena::AllocateRawInternal(size_t, bool, onnxruntime::Stream*) Available memory of " +
				"34469632 is smaller than requested bytes of 65536000",
			ErrOutOfMemory},
		{"CUDA",
			"/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_call.cc:121 onnxruntime::CudaCall CUDA failure 2: " +
				"out of memory ; GPU=0 ; hostname=host ; " +
				"file=/onnxruntime_src/onnxruntime/core/providers/cuda/cuda_stream_handle.cc ; line=175 ; " +
				"expr=cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);",
			ErrOutOfMemory},
		{"cuBLAS",
			"Non-zero status code returned while running Gemm node. Name:'fc1' Status Message: CUBLAS failure 3: " +
				"CUBLAS_STATUS_ALLOC_FAILED ; GPU=0 ; hostname=host ; expr=cublasCreate(&cublas_handle_);",
			ErrOutOfMemory},
		{"cuDNN", "kernel call 3: cuDNN failure 4004: CUDNN_STATUS_ALLOC_FAILED", ErrOutOfMemory},
		{"host", "Exception during initialization: std::bad_alloc", ErrOutOfMemory},
		{"terminated", "Exiting due to terminate flag being set to true.", ErrTerminated},
		{"thread",
			"/onnxruntime_src/onnxruntime/core/platform/posix/env.cc:185 " +
				"onnxruntime::{anonymous}::PosixThread::PosixThread(const char*, int, unsigned int (*)(int, " +
				"Eigen::ThreadPoolInterface*), Eigen::ThreadPoolInterface*, const onnxruntime::ThreadOptions&) " +
				"pthread_create failed, error code: 11 error msg: Resource temporarily unavailable",
			ErrThread},
		{"launch", "kernel call 3, launch 0: CUDA failure 1: cuLaunchKernel", ErrLaunch},
		{"convolution", "kernel call 3: cuDNN failure 5000: convolution", ErrLaunch},
		{
			"another CUDA failure",
			"CUDA failure 209: no kernel image is available for execution on the device ; GPU=0", nil,
		},
		{"a CUDA failure in the twenties", "CUDA failure 201: invalid device context ; GPU=0", nil},
		{"shape", "Got invalid dimensions for input: x for the following indices index: 0 Got: 3 Expected: 4", nil},
		{"operator", "Fatal error: com.example:Memory(-1) is not a registered function/op", nil},
		{"empty", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := classify(tt.message + "\n")
			for _, sentinel := range []error{ErrOutOfMemory, ErrTerminated, ErrThread, ErrLaunch} {
				if got := errors.Is(err, sentinel); got != (sentinel == tt.want) {
					t.Errorf("is %q: %v", sentinel, got)
				}
			}
		})
	}
}

func TestReclassify(t *testing.T) {
	if reclassify(nil) != nil {
		t.Error("nil became an error")
	}
	wrapped := fmt.Errorf("Error creating C session: %w", errors.New("std::bad_alloc"))
	if err := reclassify(wrapped); !errors.Is(err, ErrOutOfMemory) || err.Error() != "out of memory: std::bad_alloc" {
		t.Error(err)
	}
}
