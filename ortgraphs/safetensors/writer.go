package safetensors

import (
	"fmt"
	"io"
	"unicode/utf8"

	nlp "github.com/nlpodyssey/safetensors"
)

// Tensor is one tensor to write. Data holds its values, little-endian and row-major. A scalar has an empty shape.
type Tensor struct {
	Name  string
	DType DType
	Shape []int
	Data  []byte
}

// metadataKey is the only key of the header that is not a tensor.
const metadataKey = "__metadata__"

// Write writes a file. Equal tensors and metadata give equal bytes, in any order. The tensors are written in descending
// order of their types' alignment, then by name. The header is padded with spaces, so the data begins at a multiple of
// 8 bytes. Data is written to w without a copy, in one call per tensor, and is not kept.
func Write(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	views := make(map[string]view, len(tensors))
	for _, t := range tensors {
		if t.Name == metadataKey || !utf8.ValidString(t.Name) {
			return fmt.Errorf("tensor %q: a tensor cannot have this name", t.Name)
		}
		if _, ok := views[t.Name]; ok {
			return fmt.Errorf("tensor %q occurs twice", t.Name)
		}
		v := view{t}
		for _, d := range t.Shape {
			if d < 0 {
				return fmt.Errorf("tensor %q: shape %v", t.Name, t.Shape)
			}
		}
		_, size, err := dimensions(&nlp.TensorInfo{DType: t.DType, Shape: v.Shape()})
		if err != nil {
			return fmt.Errorf("tensor %q: %w", t.Name, err)
		}
		if size != v.DataLen() {
			return fmt.Errorf("tensor %q: %s%v needs %d bytes, has %d", t.Name, t.DType, t.Shape, size, len(t.Data))
		}
		views[t.Name] = v
	}
	if err := nlp.SerializeToWriter(views, metadata, w); err != nil {
		return fmt.Errorf("write safetensors: %w", err)
	}
	return nil
}

// view is a Tensor for the library. The library's own TensorView gives a scalar no bytes.
type view struct{ t Tensor }

func (v view) DType() DType    { return v.t.DType }
func (v view) Data() []byte    { return v.t.Data }
func (v view) DataLen() uint64 { return uint64(len(v.t.Data)) }

func (v view) Shape() []uint64 {
	shape := make([]uint64, len(v.t.Shape))
	for i, d := range v.t.Shape {
		shape[i] = uint64(d)
	}
	return shape
}
