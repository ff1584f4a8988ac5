package cuda

// #include <cuda.h>
import "C"

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/xtts-host/xtts-host/gpu"
	"gorgonia.org/cu"
)

var errEmpty = errors.New("memory has at least one byte")

// memory is a block of GPU memory. Its pointer is 0 after Close.
type memory struct {
	size    int
	pointer cu.DevicePtr
}

func (c *context) Allocate(size int) (gpu.Memory, error) {
	m, err := c.allocate(size)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of GPU memory: %w", size, err)
	}
	return m, nil
}

func (c *context) allocate(size int) (*memory, error) {
	if size <= 0 {
		return nil, errEmpty
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	pointer, err := cu.MemAlloc(int64(size))
	if err != nil {
		return nil, wrap("cuMemAlloc", err)
	}
	m := &memory{size, pointer}
	// On a separate stream: CUDA's legacy stream, which cuMemsetD8 uses, is not ordered with streams that do not wait
	// for it, and waiting for the whole context would break a capture.
	err = c.clearing.Clear(m, 0, size)
	if err == nil {
		err = c.clearing.Synchronize()
	}
	if err != nil {
		m.Close() // may fail too; err has the reason
		return nil, err
	}
	return m, nil
}

func (m *memory) Size() int { return m.size }

func (m *memory) Pointer() uintptr { return uintptr(m.pointer) }

func (m *memory) Close() error {
	if m.pointer == 0 {
		return nil
	}
	err := cu.MemFree(m.pointer)
	m.pointer = 0
	return during("free GPU memory", wrap("cuMemFree", err))
}

func (c *context) Share(m gpu.Memory) (name gpu.Shared, err error) {
	var handle C.CUipcMemHandle
	if err = c.open(); err == nil {
		err = check("cuIpcGetMemHandle", C.cuIpcGetMemHandle(&handle, C.CUdeviceptr(m.Pointer())))
	}
	if err != nil {
		return name, fmt.Errorf("share GPU memory: %w", err)
	}
	return *(*gpu.Shared)(unsafe.Pointer(&handle)), nil
}

// shared is a block of another process. Its pointer is 0 after Close.
type shared struct{ memory }

func (c *context) OpenShared(name gpu.Shared, size int) (gpu.Memory, error) {
	var pointer C.CUdeviceptr
	err := c.open()
	if err == nil {
		err = check("cuIpcOpenMemHandle", C.cuIpcOpenMemHandle(&pointer, *(*C.CUipcMemHandle)(unsafe.Pointer(&name)),
			C.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))
	}
	if err != nil {
		return nil, fmt.Errorf("open the GPU memory of another process: %w", err)
	}
	return &shared{memory{size, cu.DevicePtr(pointer)}}, nil
}

func (m *shared) Close() error {
	if m.pointer == 0 {
		return nil
	}
	err := check("cuIpcCloseMemHandle", C.cuIpcCloseMemHandle(C.CUdeviceptr(m.pointer)))
	m.pointer = 0
	return during("close the GPU memory of another process", err)
}

// hostMemory is the driver's own pinned memory; nil after Close.
type hostMemory struct{ bytes []byte }

func (c *context) AllocateHost(size int) (gpu.HostMemory, error) {
	m, err := c.allocateHost(size)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of pinned memory: %w", size, err)
	}
	return m, nil
}

func (c *context) allocateHost(size int) (*hostMemory, error) {
	if size <= 0 {
		return nil, errEmpty
	}
	if err := c.open(); err != nil {
		return nil, err
	}
	var p unsafe.Pointer
	if err := check("cuMemHostAlloc", C.cuMemHostAlloc(&p, C.size_t(size), C.CU_MEMHOSTALLOC_PORTABLE)); err != nil {
		return nil, err
	}
	bytes := unsafe.Slice((*byte)(p), size)
	clear(bytes) // the driver does not promise that it is zeroed
	return &hostMemory{bytes}, nil
}

func (m *hostMemory) Bytes() []byte { return m.bytes }

func (m *hostMemory) Close() error {
	if m.bytes == nil {
		return nil
	}
	err := cu.MemFreeHost(unsafe.Pointer(&m.bytes[0]))
	m.bytes = nil
	return during("free pinned memory", wrap("cuMemFreeHost", err))
}

// registration is the caller's memory that the driver has pinned; nil after Close.
type registration struct{ mem []byte }

func (c *context) Register(mem []byte) (gpu.Registration, error) {
	err := errEmpty
	if len(mem) > 0 {
		err = c.open()
	}
	if err == nil {
		err = check("cuMemHostRegister",
			C.cuMemHostRegister(unsafe.Pointer(&mem[0]), C.size_t(len(mem)), C.CU_MEMHOSTREGISTER_PORTABLE))
	}
	if err != nil {
		return nil, fmt.Errorf("pin %d bytes of memory: %w", len(mem), err)
	}
	return &registration{mem}, nil
}

func (r *registration) Close() error {
	if r.mem == nil {
		return nil
	}
	err := check("cuMemHostUnregister", C.cuMemHostUnregister(unsafe.Pointer(&r.mem[0])))
	r.mem = nil
	return during("unpin memory", err)
}
