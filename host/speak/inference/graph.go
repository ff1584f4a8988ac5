package inference

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Graph is an inference graph with its weights.
type Graph struct {
	Spec    manifest.InferenceGraph
	session *ort.Session
	binding *ort.Binding
	place   ort.Place
}

// Values are tensors by name.
type Values map[string]*Value

// Value is a tensor that a run takes or returns.
type Value struct {
	tensor *ort.Tensor
	buffer *ort.Buffer // of a value that the caller made; nil for a result
}

// Run computes the outputs of the graph. It takes of the values what the graph needs, so there may be others. Outputs
// that are named in toHost can be read there; the others stay on the device, for further runs. The caller closes them.
func (g *Graph) Run(given Values, toHost ...string) (Values, error) {
	for _, in := range g.Spec.Inputs {
		v, ok := given[in.Name]
		if !ok {
			return nil, fmt.Errorf("%s: no value for its input %q", g.Spec.Name, in.Name)
		}
		g.binding.BindInput(in.Name, v.tensor) // Run returns the first error
	}
	for _, out := range g.Spec.Outputs {
		place := g.place
		for _, name := range toHost {
			if name == out.Name {
				place = ort.Host
			}
		}
		g.binding.BindOutputAt(out.Name, place)
	}
	if err := g.binding.Run(nil); err != nil {
		return nil, err
	}
	tensors, err := g.binding.Outputs()
	if err != nil {
		return nil, err
	}
	results := Values{}
	for name, t := range tensors {
		results[name] = &Value{tensor: t}
	}
	return results, nil
}

// newValue returns a value in the memory of the host, with a copy of x.
func newValue[T ort.Element](dtype manifest.DType, x []T, shape ...int) (*Value, error) {
	buffer, err := ort.NewBuffer(len(bytesOf(x)))
	if err != nil {
		return nil, err
	}
	copy(buffer.Bytes(), bytesOf(x))
	t, err := ort.NewTensor(buffer.Bytes(), dtype, shape)
	if err != nil {
		buffer.Close()
		return nil, err
	}
	return &Value{t, buffer}, nil
}

// Floats returns a value of f32.
func Floats(x []float32, shape ...int) (*Value, error) { return newValue(manifest.F32, x, shape...) }

// Integers returns a value of i32.
func Integers(x []int32, shape ...int) (*Value, error) { return newValue(manifest.I32, x, shape...) }

// Shape returns the dimensions.
func (v *Value) Shape() []int { return v.tensor.Shape() }

// Floats returns the elements of a value of f32 in the memory of the host, until Close.
func (v *Value) Floats() []float32 { return ort.View[float32](v.tensor.Bytes()) }

// Close releases the value. No run may use it later.
func (v *Value) Close() error {
	err := v.tensor.Close()
	if v.buffer != nil {
		err = v.buffer.Close()
	}
	return err
}

// Close closes all values.
func (v Values) Close() {
	for _, value := range v {
		value.Close() // of memory of this process: never fails
	}
}
