package ort

import (
	"fmt"
	"math/bits"
	"unsafe"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Tensor is a typed view, with a shape, of memory that the caller owns, or an output for which ONNX Runtime has
// allocated memory ([Binding.Outputs]). It may be bound to any number of bindings, as an input and as an output. A
// Tensor must not be closed while it is being bound; otherwise it is safe for concurrent use.
type Tensor struct {
	value *cValue
	mem   []byte
	dtype manifest.DType
	shape []int
}

// NewTensor returns a view of the first bytes of mem as a row-major tensor. It copies nothing. The empty shape is a
// scalar; every dimension must be positive. mem may be larger than needed, but not smaller. It must be aligned to the
// element size, must not be in the Go heap (see [Buffer]), and must stay mapped as long as the tensor or a binding
// refers to it.
func NewTensor(mem []byte, dtype manifest.DType, shape []int) (*Tensor, error) {
	t, err := newTensor(mem, dtype, shape)
	if err != nil {
		return nil, fmt.Errorf("tensor %s%v: %w", dtype, shape, err)
	}
	return t, nil
}

// Place is the location of memory: the host, or the GPU of that index in CUDA's order in this process.
type Place int

// Host is the machine's own memory.
const Host Place = -1

// NewTensorAt is NewTensor for size bytes at an address that need not belong to this process, such as a GPU address.
// Bytes returns nil.
func NewTensorAt(place Place, address uintptr, size int, dtype manifest.DType, shape []int) (*Tensor, error) {
	t, err := newTensorAt(place, address, size, dtype, shape)
	if err != nil {
		return nil, fmt.Errorf("tensor %s%v: %w", dtype, shape, err)
	}
	return t, nil
}

func newTensor(mem []byte, dtype manifest.DType, shape []int) (*Tensor, error) {
	t, err := newTensorAt(Host, uintptr(unsafe.Pointer(unsafe.SliceData(mem))), len(mem), dtype, shape)
	if err != nil {
		return nil, err
	}
	need, _ := byteSize(dtype, shape)
	t.mem = mem[:need:need]
	return t, nil
}

func newTensorAt(place Place, address uintptr, size int, dtype manifest.DType, shape []int) (*Tensor, error) {
	need, err := byteSize(dtype, shape)
	if err != nil {
		return nil, err
	}
	if size < need {
		return nil, fmt.Errorf("needs %d bytes, but the memory has %d", need, size)
	}
	if address%uintptr(dtype.Size()) != 0 {
		return nil, fmt.Errorf("the memory at %#x is not aligned to %d bytes", address, dtype.Size())
	}
	if err := retain(tensorKind); err != nil {
		return nil, err
	}
	t := &Tensor{dtype: dtype, shape: append([]int(nil), shape...)}
	dims := make([]int64, len(shape))
	for i, d := range shape {
		dims[i] = int64(d)
	}
	info, err := memoryInfo(place)
	if err == nil {
		t.value, err = newValue(info, address, need, dtype, dims)
	}
	if err != nil {
		release(tensorKind)
		return nil, err
	}
	return t, nil
}

// adopt makes a Tensor of an output at a place. It owns the value, also after an error.
func adopt(v *cValue, place Place) (_ *Tensor, err error) {
	defer func() {
		if err != nil {
			releaseValue(v)
		}
	}()
	t := &Tensor{value: v}
	var address uintptr
	if t.dtype, t.shape, address, err = describeValue(v); err != nil {
		return nil, err
	}
	need, err := byteSize(t.dtype, t.shape)
	if err != nil {
		return nil, err
	}
	if place == Host {
		t.mem = unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), need)
	}
	return t, retain(tensorKind)
}

// byteSize returns the number of bytes of a tensor.
func byteSize(dtype manifest.DType, shape []int) (int, error) {
	n := uint64(dtype.Size())
	if n == 0 {
		return 0, fmt.Errorf("unknown element type %q", string(dtype))
	}
	for _, d := range shape {
		if d <= 0 {
			return 0, fmt.Errorf("dimension %d is not positive", d)
		}
		high, low := bits.Mul64(n, uint64(d))
		if high != 0 || low > 1<<62 {
			return 0, fmt.Errorf("has more elements than memory can hold")
		}
		n = low
	}
	return int(n), nil
}

// DType returns the element type.
func (t *Tensor) DType() manifest.DType { return t.dtype }

// Shape returns the dimensions. The caller must not modify them.
func (t *Tensor) Shape() []int { return t.shape }

// Bytes returns exactly the memory of the tensor, or nil if NewTensorAt created it, or if it is an output on a GPU.
func (t *Tensor) Bytes() []byte { return t.mem }

// Close releases ONNX Runtime's view; the caller still owns the memory. Memory that ONNX Runtime has allocated is freed
// when no binding holds the tensor, either. Bindings that hold it stay valid.
func (t *Tensor) Close() error {
	if t.value == nil {
		return nil
	}
	releaseValue(t.value)
	t.value = nil
	release(tensorKind)
	return nil
}
