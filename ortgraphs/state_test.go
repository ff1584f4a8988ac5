package ortgraphs

import (
	"errors"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/safetensors"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// withState gives the fixture a running mean.
func withState(f *fixture) {
	const name = "norm.running_mean"
	f32 := onnxpb.TensorProto_FLOAT
	f.manifest.State = []manifest.State{{Name: name, Shape: []int{4}}}
	for file, m := range f.models {
		m.Graph.Input = append(m.Graph.Input, value(name, f32, 4))
		if file != evalFile {
			m.Graph.Output = append(m.Graph.Output, value("state."+name, f32, 4))
		}
	}
	f.weights = append(f.weights,
		safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: []int{4}, Data: make([]byte, 16)})
}

func TestState(t *testing.T) {
	f := newFixture()
	withState(f)
	b, err := Load(f.write(t))
	if err != nil {
		t.Fatal(err)
	}
	if shape := b.Stored()["norm.running_mean"]; len(shape) != 1 || shape[0] != 4 {
		t.Errorf("the weights have it with shape %v", shape)
	}
	// Three copies of one tensor, which takes 256 bytes.
	if s := b.Inspect(); s.Parameters.Memory.State != 3*256 || len(s.State) != 1 {
		t.Errorf("inspected %+v, %d bytes", s.State, s.Parameters.Memory.State)
	}
	without := newFixture()
	plain, err := Load(without.write(t))
	if err != nil || plain.Hash() == b.Hash() {
		t.Errorf("the same hash without state, %v", err)
	}
}

func TestStateRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*fixture)
		want   string
	}{
		"no output": {
			func(f *fixture) { f.models[trainFile].Graph.Output = f.models[trainFile].Graph.Output[:5] },
			`training_model.onnx: output "state.norm.running_mean": missing`,
		},
		"an output of the eval graph": {
			func(f *fixture) {
				g := f.models[evalFile].Graph
				g.Output = append(g.Output, value("state.norm.running_mean", onnxpb.TensorProto_FLOAT, 4))
			},
			`eval_model.onnx: output "state.norm.running_mean": is not in outputs`,
		},
		"another shape": {
			func(f *fixture) { f.manifest.State[0].Shape = []int{2, 2} },
			`params.safetensors: tensor "norm.running_mean": has shape [4], bundle.json says [2,2]`,
		},
		"no initial values": {
			func(f *fixture) { f.weights = f.weights[:len(f.weights)-1] },
			`params.safetensors: tensor "norm.running_mean": missing`,
		},
		"no eval graph": {
			func(f *fixture) { delete(f.models, evalFile); f.manifest.Graphs = f.manifest.Graphs[:2] },
			"bundle.json: state: no graph is of kind eval",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture()
			withState(f)
			c.change(f)
			_, err := Load(f.write(t))
			var invalid *InvalidError
			if !errors.As(err, &invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}
