// Package cuda is a GPU of NVIDIA's behind the interfaces of package gpu: memory, streams and events by the calls of the
// CUDA driver.
//
//	device, err := cuda.Open("GPU-5e8f2b1c-…")
//	if errors.Is(err, gpu.ErrNotBuilt) { ... } // this build has no CUDA
//	defer device.Close()
//
//	runtime.LockOSThread() // for good: the thread ends with the goroutine
//	if err := device.Bind(); err != nil { ... }
//	stream, err := device.NewStream()
//
// The package has two forms. With the build tag `cuda` it links with the driver's libcuda.so.1, through the module
// gorgonia.org/cu where that has the call and by cgo where it has not; such a program ends when it starts on a machine without
// a driver or without a GPU that CUDA shows it, before its main function runs. Without the tag, Open says that the build has no CUDA, and the
// program runs everywhere. scripts/cuda-env.sh has what a build with the tag needs; `make build` does all of it.
//
// A Context uses the primary context of its GPU, the one that ONNX Runtime and NVIDIA's libraries use too. Its streams do not
// wait for CUDA's legacy stream. A thread that waits for a stream or an event sleeps, where CUDA's default is to spin: the
// processors belong to the data plugins.
//
// An error names the call, CUDA's name for what went wrong and its number:
//
//	allocate 274877906944 bytes of GPU memory: cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (2)
//
// CUDA tells of work that failed on the GPU by the calls that come after it, whatever these do; the context is of no use then.
package cuda
