// Stands before the CUDA toolkit's cuda.h on the include path. CUDA 13 gave five calls a new default version with another
// signature; the Go module gorgonia.org/cu calls them with their signatures of CUDA 12. Every driver still exports the old
// symbols, since programs built with CUDA 12 need them, so this header names those again. xtts-host itself uses none of the
// five. The prototypes are those of cuda.h 12.9; that these five are all is what compiling cu against 13.0 and 13.5 showed.
#ifndef XTTS_HOST_COMPAT_CUDA_H
#define XTTS_HOST_COMPAT_CUDA_H
#include_next <cuda.h>
#if CUDA_VERSION >= 13000
#undef cuCtxCreate
#undef cuMemAdvise
#undef cuMemPrefetchAsync
#undef cuGraphAddDependencies
#undef cuGraphGetEdges
#define cuCtxCreate cuCtxCreate_v2
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device);
CUresult CUDAAPI cuMemAdvise(CUdeviceptr memory, size_t size, CUmem_advise advice, CUdevice device);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr memory, size_t size, CUdevice to, CUstream stream);
CUresult CUDAAPI cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count);
CUresult CUDAAPI cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count);
#endif
#endif
