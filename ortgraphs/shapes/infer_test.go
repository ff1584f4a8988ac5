package shapes_test

import (
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

var bundles = []string{"../builtin/myxtts-nano", "../builtin/myxtts-multispeaker", "../testdata/pico"}

// TestExportedGraphs: for graphs exported from PyTorch, every shape follows from the inputs, gradients have the shapes
// of the parameters, and the cost equals the exporter's.
func TestExportedGraphs(t *testing.T) {
	for _, dir := range bundles {
		b, err := ortgraphs.Load(dir)
		if err != nil {
			t.Fatal(err)
		}
		model, err := ortgraphs.ReadModel(filepath.Join(dir, "training_model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for i, bucket := range b.Manifest.Buckets {
			for _, batch := range []int{1, 3, 8} {
				sizes := shapes.Sizes(bucket.Values(batch))
				r, err := shapes.Infer(model, sizes)
				if err != nil {
					t.Fatalf("%s %v: %v", dir, sizes, err)
				}
				for _, n := range r.Nodes {
					for _, v := range n.Out {
						if v != nil && !v.Known() {
							t.Fatalf("%s %v: %s (%s): the shape of %s is not known", dir, sizes, n.Place, n.Op(),
								v.Name)
						}
					}
				}
				for _, p := range b.Manifest.Parameters {
					want := make([]int64, len(p.Shape))
					for k, d := range p.Shape {
						want[k] = int64(d)
					}
					if grad := r.Value("grad." + p.Name); grad == nil || !slices.Equal(grad.Shape, want) {
						t.Errorf("%s %v: gradient of %s: %v, want %d", dir, sizes, p.Name, grad, want)
					}
				}
				for _, c := range b.Manifest.Cost {
					if c.Bucket != i || c.BatchSize != batch {
						continue
					}
					compared++
					if got := r.Cost(); got.FLOPs != c.FLOPs || got.Bytes != c.Bytes || got.Unknown != 0 {
						t.Errorf("%s %v: %+v, the exporter counted %g operations and %g bytes", dir, sizes, got,
							c.FLOPs, c.Bytes)
					}
				}
			}
		}
		if compared == 0 {
			t.Errorf("%s: no cost of the exporter is for a batch size of this test", dir)
		}
	}
}

// TestRefused: a Transpose that shows a dimension twice, and a conversion to no type, are errors.
func TestRefused(t *testing.T) {
	perm := &onnxpb.AttributeProto{
		Name: proto.String("perm"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{1, -1},
	}
	for _, c := range []struct {
		op, want   string
		attributes []*onnxpb.AttributeProto
	}{
		{"Transpose", "the node of y (Transpose): perm [1 -1] has axis 1 twice", []*onnxpb.AttributeProto{perm}},
		{"Cast", "the node of y (Cast): the type is missing", nil},
		{"CastLike", "the node of y (CastLike): input 1 is missing", nil},
	} {
		x := &onnxpb.TensorProto{
			Name: proto.String("x"), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: []int64{1, 1},
			FloatData: []float32{1},
		}
		_, err := shapes.Infer(&onnxpb.ModelProto{Graph: &onnxpb.GraphProto{
			Initializer: []*onnxpb.TensorProto{x},
			Node: []*onnxpb.NodeProto{{
				OpType: &c.op, Input: []string{"x"}, Output: []string{"y"}, Attribute: c.attributes,
			}},
		}}, nil)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %s", c.op, err, c.want)
		}
	}
}

// TestNumber: numbers that a float64 does not have, or that no shape needs, are not known.
func TestNumber(t *testing.T) {
	for _, c := range []struct {
		kind shapes.Type
		raw  []byte
		want float64
		ok   bool
	}{
		{onnxpb.TensorProto_INT64, []byte{1, 0, 0, 0, 0, 0, 0x10, 0}, 1<<52 + 1, true},
		{onnxpb.TensorProto_INT64, []byte{1, 0, 0, 0, 0, 0, 0x20, 0}, 0, false},
		{onnxpb.TensorProto_BFLOAT16, []byte{0xc0, 0x3f}, 1.5, true},
		{onnxpb.TensorProto_FLOAT16, []byte{0, 0x3e}, 0, false},
	} {
		got, ok := shapes.Number(&onnxpb.TensorProto{DataType: proto.Int32(int32(c.kind)), RawData: c.raw})
		if got != c.want || ok != c.ok {
			t.Errorf("%v %x: %g, %v; want %g, %v", c.kind, c.raw, got, ok, c.want, c.ok)
		}
	}
}
