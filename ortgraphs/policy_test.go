package ortgraphs

import (
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestPolicyHasTheGraphsTypes: a bf16 graph may return the gradient of a bf16 matrix in either type.
func TestPolicyHasTheGraphsTypes(t *testing.T) {
	for gradient, want := range map[onnxpb.TensorProto_DataType]manifest.DType{
		onnxpb.TensorProto_BFLOAT16: manifest.BF16, onnxpb.TensorProto_FLOAT: manifest.F32,
	} {
		f := newFixture()
		f.models["training_model.bf16.onnx"].Graph.Output[3] = value("grad.out.weight", gradient, 4, 3)
		b, err := Load(f.write(t))
		if err != nil {
			t.Fatal(err)
		}
		for precision, role := range map[manifest.DType]Role{
			manifest.BF16: {Trained: true, Decay: true, Compute: manifest.BF16, Gradient: want},
			manifest.F32:  {Trained: true, Decay: true, Compute: manifest.F32, Gradient: manifest.F32},
		} {
			if got := NewArena(b.Manifest.Parameters, b.Policy(precision)).Role(0); got != role {
				t.Errorf("%s with a gradient in %s: %+v, want %+v", precision, want, got, role)
			}
		}
	}
}
