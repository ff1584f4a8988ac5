// Package cuda implements the interfaces of package gpu for an NVIDIA GPU: memory, streams and events, with calls of
// the CUDA driver.
//
//	device, err := cuda.Open("GPU-5e8f2b1c-…")
//	if errors.Is(err, gpu.ErrNotBuilt) { ... } // this build has no CUDA
//	defer device.Close()
//
//	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
//	if err := device.Bind(); err != nil { ... }
//	stream, err := device.NewStream()
//
// The package has two versions. With the build tag `cuda` it links with the driver's libcuda.so.1, through the module
// gorgonia.org/cu if that has the call, otherwise through cgo. Such a program exits before its main function on a
// machine without a driver, or without a GPU that CUDA shows it. Without the tag, Open reports that the build has no
// CUDA, and the program runs everywhere. scripts/cuda-env.sh has what a build with the tag needs; `make build` does all
// of it.
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
