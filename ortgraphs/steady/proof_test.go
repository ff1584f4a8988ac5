package steady_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/steady"
)

// elementwise are operators with one and with two operands, which have kernels of their own for parts of a tensor that
// fill no vector register.
var elementwise = map[int]string{
	1: "Abs Ceil Cos Exp Floor LeakyRelu LogSoftmax Neg Reciprocal Relu Sigmoid Sign Sin Softmax Tanh",
	2: "Add Div LayerNormalization Max Min Mul Pow Sub",
}

// TestElementwise: operators that are taken to have the same bits with any number of threads have them, for large
// tensors that no number of threads divides.
func TestElementwise(t *testing.T) {
	for operands, ops := range elementwise {
		for _, op := range strings.Fields(ops) {
			for _, shape := range [][]int64{{1009, 1013}, {7, 100003}, {3, 5, 7001}} {
				nodes := []*onnxpb.NodeProto{
					{OpType: proto.String(op), Input: []string{"x", "x"}[:operands], Output: []string{"y"}},
				}
				if op == "LayerNormalization" {
					nodes[0].Input[1] = "one"
					nodes = []*onnxpb.NodeProto{ones("one", int(shape[len(shape)-1])), nodes[0]}
				}
				model, r := model(t, shape, shape, nodes...)
				rewritten, err := steady.Rewrite(model, []steady.Bucket{{}})
				if err != nil || rewritten.Unproven != "" || rewritten.Changed != 0 {
					t.Fatalf("%s: %+v, %v", op, rewritten.Unproven, err)
				}
				want := bits(t, model, r, 1, 1)["y"]
				for _, threads := range []int{2, 3, 7, 16} {
					if got := bits(t, model, r, 1, threads)["y"]; !bytes.Equal(got, want) {
						t.Errorf("%s of %v: other bits with %d threads", op, shape, threads)
					}
				}
			}
		}
	}
}

// ones is a constant vector.
func ones(name string, n int) *onnxpb.NodeProto {
	values := make([]float32, n)
	for i := range values {
		values[i] = 1
	}
	return &onnxpb.NodeProto{
		OpType: proto.String("Constant"), Output: []string{name}, Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String("value_floats"), Type: onnxpb.AttributeProto_FLOATS.Enum(), Floats: values,
		}},
	}
}

// TestUnproven: what is not known to have the same bits is named.
func TestUnproven(t *testing.T) {
	for _, op := range []string{
		"Conv", "LSTM", "Scan", "If", "CumSum", "ReduceLogSum", "ScatterND", "org.example.Sum", "Einsum",
	} {
		domain, name, ok := strings.Cut(op, "example.")
		n := &onnxpb.NodeProto{OpType: proto.String(op), Input: []string{"x"}, Output: []string{"y"}}
		if ok {
			n.Domain, n.OpType = proto.String(domain+"example"), proto.String(name)
		}
		model, err := proto.Marshal(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{Node: []*onnxpb.NodeProto{n}}})
		if err != nil {
			t.Fatal(err)
		}
		r, err := steady.Rewrite(model, nil)
		if want := fmt.Sprintf("%s (y)", op); err != nil || r.Unproven != want || r.Changed != 0 {
			t.Errorf("%q, %v, want %q", r.Unproven, err, want)
		}
	}
}
