package train

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
)

// Evaluated are the parameters and the state that evaluations read: in f32, with moving averages in place of the
// weights that have one. The model owns them; others read them, on the goroutine of the trainer.
type Evaluated struct {
	// Tensors are the memory of the model, by name: each has its present value.
	Tensors map[string]*ort.Tensor

	memory *memory
	places map[string]evaluatedPlace
}

// evaluatedPlace is where a tensor is.
type evaluatedPlace struct {
	*block
	ortgraphs.Span
}

func newEvaluated(m *Model) Evaluated {
	e := Evaluated{Tensors: tensors{}, memory: &m.memory, places: map[string]evaluatedPlace{}}
	for _, p := range m.players {
		for i, param := range p.params {
			at, _ := p.arena.Parameter(ortgraphs.Weights, i)
			place := evaluatedPlace{&p.weights.block, at}
			if average, ok := p.arena.Parameter(ortgraphs.State, i); ok && p.averages.arena != nil {
				place = evaluatedPlace{&p.averages.block, average}
			}
			e.add(param.Name, place, param.Shape)
		}
		for i, t := range p.state.tensors {
			e.add(t.Name, evaluatedPlace{&p.state.kept, p.state.places[i]}, t.Shape)
		}
	}
	return e
}

func (e *Evaluated) add(name string, at evaluatedPlace, shape []int) {
	e.places[name], e.Tensors[name] = at, e.memory.view(*at.block, at.Span, shape...)
}

// Tensor describes a tensor.
func (e *Evaluated) Tensor(name string) (safetensors.Info, bool) {
	at, ok := e.places[name]
	if !ok {
		return safetensors.Info{}, false
	}
	return safetensors.Info{
		Name: name, DType: safetensors.F32, Shape: e.Tensors[name].Shape(), Bytes: int64(at.Bytes()),
	}, true
}

// Read copies the present value of a tensor, after all work queued so far.
func (e *Evaluated) Read(name string, dst []byte) error {
	at, ok := e.places[name]
	if !ok {
		return fmt.Errorf("the model has no tensor %q", name)
	}
	if !e.memory.device.onGPU() {
		copy(dst, at.host[at.Offset:][:at.Bytes()])
		return nil
	}
	return readPart(e.memory, at.block, at.Offset, at.Bytes(), func(place int, data []byte) error {
		copy(dst[place-at.Offset:], data)
		return nil
	})
}
