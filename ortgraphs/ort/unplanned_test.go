package ort_test

import (
	"os"
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// TestUnplanned: the session computes the same, and describes and refuses the same shapes. ONNX Runtime sees none: it
// opens a graph whose shapes are a contradiction.
func TestUnplanned(t *testing.T) {
	for _, name := range []string{"types", "sgd", "add_one"} {
		model, err := os.ReadFile("testdata/" + name + ".onnx")
		if err != nil {
			t.Fatal(err)
		}
		s, planned := open(t, ort.SessionConfig{Model: model, Threads: 1, Unplanned: true}), graph(t, name)
		if !reflect.DeepEqual(s.Inputs(), planned.Inputs()) || !reflect.DeepEqual(s.Outputs(), planned.Outputs()) {
			t.Errorf("%s: inputs %v, planned %v; outputs %v, planned %v", name, s.Inputs(), planned.Inputs(),
				s.Outputs(), planned.Outputs())
		}
		if name != "add_one" {
			continue
		}
		if err := addOne(s); err != nil {
			t.Error(err)
		}
	}
	turned := kernelModel(t, map[string]onnxpb.TensorProto_DataType{"y": onnxpb.TensorProto_FLOAT},
		&onnxpb.NodeProto{
			OpType: proto.String("Transpose"), Input: []string{"x"}, Output: []string{"y"},
			Attribute: []*onnxpb.AttributeProto{{
				Name: proto.String("perm"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{1, 0},
			}},
		})
	if s, err := ort.NewSession(ort.SessionConfig{Model: turned, Threads: 1}); err == nil {
		t.Errorf("a vector is transposed: %v", s.Close())
	}
	open(t, ort.SessionConfig{Model: turned, Threads: 1, Unplanned: true})
	empty, err := proto.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(10)})
	if err != nil {
		t.Fatal(err)
	}
	if s, err := ort.NewSession(ort.SessionConfig{Model: empty, Threads: 1, Unplanned: true}); err == nil {
		t.Errorf("a model without a graph is opened: %v", s.Close())
	}
}
