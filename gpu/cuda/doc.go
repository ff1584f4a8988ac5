// Package cuda implements the interfaces of package gpu for an NVIDIA GPU: memory, streams and events, with calls of
// the CUDA driver.
//
//	device, err := cuda.Open("GPU-5e8f2b1c-…")
//	if err != nil { ... } // there is no driver, or no such GPU
//	defer device.Close()
//
//	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
//	if err := device.Bind(); err != nil { ... }
//	stream, err := device.NewStream()
//
// It calls the driver through the module gorgonia.org/cu if that has the call, otherwise through cgo. The driver's
// library, libcuda.so.1, is not linked: Start opens it when a GPU is first asked for, and fills the table of an
// archive of trampolines (libcuda/libcuda.c, scripts/libcuda.sh). So every program starts on a machine without a
// driver.
//
// A Context uses the primary context of its GPU, like ONNX Runtime and NVIDIA's libraries. Its streams do not wait for
// CUDA's legacy stream. A thread that waits for a stream or an event sleeps instead of spinning, which is CUDA's
// default: the data plugins need the CPU.
//
// An error contains the call, CUDA's name of the error and its number:
//
//	allocate 274877906944 bytes of GPU memory: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)
//
// CUDA reports failed work on the GPU in later calls, whatever they do. The context is unusable then.
package cuda
