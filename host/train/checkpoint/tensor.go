package checkpoint

import (
	"io"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Tensor is one tensor of a run. Data is its values, little endian, row by row, in memory of the caller: Save reads it
// and Restore fills it. A scalar has an empty shape.
type Tensor struct {
	Name  string
	DType manifest.DType // F32, also when it is empty, or BF16
	Shape []int
	Data  []byte
	// Frozen weights do not change while the run lasts: its checkpoints share them.
	Frozen bool
	// Average tensors are moving averages of the weights of the same names.
	Average bool
}

// Moment returns the name in optimizer.safetensors of a moment of a parameter; kind is "exp_avg" or
// "exp_avg_sq", as PyTorch names them.
func Moment(kind, parameter string) string { return kind + "." + parameter }

// stored is the type's name in a file.
func (t Tensor) stored() safetensors.DType {
	if t.DType == manifest.BF16 {
		return safetensors.BF16
	}
	return safetensors.F32
}

// Fits reports whether a tensor of a file can be read into t.
func (t Tensor) Fits(saved safetensors.Info) bool {
	return saved.DType == t.stored() && slices.Equal(saved.Shape, t.Shape) && saved.Bytes == int64(len(t.Data))
}

// size returns the bytes of the tensors' values, which are nearly all of a checkpoint.
func size(tensors []Tensor) (n int64) {
	for _, t := range tensors {
		n += int64(len(t.Data))
	}
	return n
}

func writeTensors(w io.Writer, tensors []Tensor) error {
	list := make([]safetensors.Tensor, len(tensors))
	for i, t := range tensors {
		list[i] = safetensors.Tensor{Name: t.Name, DType: t.stored(), Shape: t.Shape, Data: t.Data}
	}
	return safetensors.Write(w, list, map[string]string{"format": "pt"})
}

// Weights reads tensors from one or more files; each name is in one of them.
type Weights []*safetensors.Reader

// Tensors returns all tensors, file by file.
func (w Weights) Tensors() []safetensors.Info {
	var all []safetensors.Info
	for _, r := range w {
		all = append(all, r.Tensors()...)
	}
	return all
}

// Tensor returns a tensor by its name.
func (w Weights) Tensor(name string) (safetensors.Info, bool) {
	if r := w.of(name); r != nil {
		return r.Tensor(name)
	}
	return safetensors.Info{}, false
}

// Read reads the values of a tensor that Tensor finds.
func (w Weights) Read(name string, dst []byte) error {
	r := w.of(name)
	if r == nil {
		r = w[0] // whose error names the tensor
	}
	return r.Read(name, dst)
}

func (w Weights) of(name string) *safetensors.Reader {
	for _, r := range w {
		if _, ok := r.Tensor(name); ok {
			return r
		}
	}
	return nil
}
