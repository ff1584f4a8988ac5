package ort

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Buffer is host memory for tensors: zeroed, page-aligned, outside the Go heap. It is never moved or freed while ONNX
// Runtime uses it, and takes no physical memory before it is written. A Buffer that is dropped without Close is leaked.
type Buffer struct{ mem []byte }

// NewBuffer maps size bytes, at least one. The error is [ErrOutOfMemory] if memory is exhausted.
func NewBuffer(size int) (*Buffer, error) {
	if size <= 0 {
		return nil, fmt.Errorf("buffer of %d bytes: the size must be positive", size)
	}
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if errors.Is(err, unix.ENOMEM) {
		err = ErrOutOfMemory
	}
	if err != nil {
		return nil, fmt.Errorf("buffer of %d bytes: %w", size, err)
	}
	return &Buffer{mem: mem}, nil
}

// Bytes returns the whole memory, or nil after Close. The slice is invalid after Close.
func (b *Buffer) Bytes() []byte { return b.mem }

// Close unmaps the memory. No binding may refer to it.
func (b *Buffer) Close() error {
	if b.mem == nil {
		return nil
	}
	mem := b.mem
	b.mem = nil
	if err := unix.Munmap(mem); err != nil {
		return fmt.Errorf("unmap buffer of %d bytes: %w", len(mem), err)
	}
	return nil
}

// Element is a type for [View]. Half-precision numbers are represented by their bits, uint16.
type Element interface {
	float32 | float64 | int32 | int64 | uint8 | uint16
}

// View returns the memory as elements of type T, in the machine's byte order. It panics if mem is not aligned for T or
// not a whole number of elements, which only a wrong layout can cause.
func View[T Element](mem []byte) []T {
	var element T
	size := unsafe.Sizeof(element)
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if n := uintptr(len(mem)); n%size != 0 || uintptr(p)%size != 0 {
		panic(fmt.Sprintf("ort.View: %d bytes at %p are not an aligned whole number of %T", n, p, element))
	}
	return unsafe.Slice((*T)(p), uintptr(len(mem))/size)
}
