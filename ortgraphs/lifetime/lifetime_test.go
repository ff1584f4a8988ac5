package lifetime_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// graph has one node a line, such as "y = Relu x". The input x has that many numbers; the values named out... are
// outputs.
func graph(t *testing.T, numbers int64, lines ...string) *shapes.Result {
	t.Helper()
	info := func(name string) *onnxpb.ValueInfoProto {
		dim := &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: numbers}}
		return &onnxpb.ValueInfoProto{
			Name: proto.String(name),
			Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{
				ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)),
				Shape:    &onnxpb.TensorShapeProto{Dim: []*onnxpb.TensorShapeProto_Dimension{dim}}}}},
		}
	}
	g := &onnxpb.GraphProto{Input: []*onnxpb.ValueInfoProto{info("x")}}
	for _, line := range lines {
		w := strings.Fields(line)
		g.Node = append(g.Node, &onnxpb.NodeProto{Output: w[:1], OpType: proto.String(w[2]), Input: w[3:]})
		if strings.HasPrefix(w[0], "out") {
			g.Output = append(g.Output, info(w[0]))
		}
	}
	r, err := shapes.Infer(
		&onnxpb.ModelProto{Graph: g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text lists the order of the nodes, and the buffers with their values and lives.
func text(p *lifetime.Plan) string {
	s := ""
	for _, n := range p.Nodes {
		s += n.Out[0].Name + " "
	}
	for _, b := range p.Buffers {
		s += "| "
		for _, v := range b.Values {
			s += v.Name + " "
		}
		s += fmt.Sprintf("%d-%d %d ", b.First, b.Last, b.Bytes)
	}
	return strings.TrimSpace(s)
}

func TestPlan(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lines []string
		want  string
		peak  int64
	}{
		{
			"the last leaf comes first, and what it reads just before it",
			[]string{"a = Relu x", "out1 = Neg a", "b = Exp x", "out2 = Neg b"}, "b out2 a out1 | b a 0-3 400", 400,
		},
		{
			"of two operands the later one is computed first", []string{"a = Relu x", "b = Exp x", "out = Add a b"},
			"b a out | b 0-2 400 | a 1-2 400", 800,
		},
		{
			"a buffer serves later values", []string{"a = Relu x", "b = Exp a", "c = Neg b", "out = Add c b"},
			"a b c out | a c 0-3 400 | b 1-3 400", 800,
		},
		{
			"an unread result is there while its node runs", []string{"a = Relu x", "out = Neg x"}, "out a | a 1-1 400",
			400,
		},
		{
			"a view has no memory",
			[]string{"a = Relu x", "b = Identity a", "c = Identity b", "d = Exp x", "out = Add c d"},
			"d a b c out | d 0-4 400 | a b c 1-4 400", 800,
		},
		{"so has a view of an input", []string{"a = Identity x", "out = Neg a"}, "a out", 0},
	} {
		p := lifetime.Of(graph(t, 100, tt.lines...))
		peak, at := p.Peak()
		if got := text(p); got != tt.want || peak != tt.peak {
			t.Errorf("%s: %s, peak %d\nwant %s, peak %d", tt.name, got, peak, tt.want, tt.peak)
		}
		live := int64(0)
		for _, b := range p.Live(at) {
			live += b.Bytes
		}
		if live != peak {
			t.Errorf("%s: %d bytes live at the peak of %d", tt.name, live, peak)
		}
	}
}

// buffer is one of a plan.
func buffer(bytes int64, first, last int) *lifetime.Buffer {
	return &lifetime.Buffer{Bytes: bytes, First: first, Last: last}
}

// TestExceeds: a plan exceeds others whose peaks are all lower.
func TestExceeds(t *testing.T) {
	plan := func(bytes int64) *lifetime.Plan {
		return &lifetime.Plan{Nodes: make([]*shapes.Node, 2), Buffers: []*lifetime.Buffer{buffer(bytes, 0, 1)}}
	}
	for _, tt := range []struct {
		others []*lifetime.Plan
		want   bool
	}{{[]*lifetime.Plan{plan(1), plan(2)}, true}, {[]*lifetime.Plan{plan(1), plan(3)}, false}} {
		if got := plan(3).Exceeds(tt.others...); got != tt.want {
			t.Errorf("%t, want %t", got, tt.want)
		}
	}
}

func TestArena(t *testing.T) {
	const mb = 1 << 20
	for _, tt := range []struct {
		name    string
		buffers []*lifetime.Buffer
		want    int64
	}{
		{"sizes are multiples of 256", []*lifetime.Buffer{buffer(1, 0, 0)}, 256},
		{"a chunk is divided", []*lifetime.Buffer{buffer(3*mb, 0, 0), buffer(2*mb, 1, 2), buffer(mb, 1, 2)}, 3 * mb},
		{
			"the smallest chunk is taken",
			[]*lifetime.Buffer{buffer(4*mb, 0, 0), buffer(mb, 0, 0), buffer(mb, 1, 2), buffer(4*mb, 1, 2)}, 5 * mb,
		},
		{"neighbors are joined", []*lifetime.Buffer{
			buffer(4*mb, 0, 0), buffer(2*mb, 1, 1), buffer(2*mb, 1, 2), buffer(4*mb, 3, 3),
		}, 4 * mb},
		{"regions are not", []*lifetime.Buffer{buffer(mb, 0, 0), buffer(mb, 0, 0), buffer(2*mb, 1, 1)}, 4 * mb},
	} {
		p := &lifetime.Plan{Nodes: make([]*shapes.Node, 4), Buffers: tt.buffers}
		if got := lifetime.Arena(p); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", tt.name, got, tt.want)
		}
	}
}
