package nantrace

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMain(m *testing.M) { os.Exit(orttest.Run(m)) }

const pico = "../../../ortgraphs/testdata/pico"

// lengths of the rows of spectrograms. The planted faults concern the row of 9 frames.
var lengths = []int{14, 9, 12, 5}

const sick = 1

// step is a batch of pico with its weights.
func step(t *testing.T) Case {
	t.Helper()
	b, err := ortgraphs.Load(pico)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 0))
	c := Case{Model: proto.CloneOf(b.Model("training_model.onnx")), Threads: 1}
	sizes := map[string]int{"B": len(lengths), "T_text": 8, "T_mel": 16, "T_ref_mel": 10}
	for _, spec := range b.Manifest.Inputs {
		in := Input{Kind: Batch, Name: spec.Name, DType: spec.DType}
		n := 1
		for _, d := range spec.Shape {
			size := d.Size
			if d.Symbol != "" {
				size = sizes[d.Symbol]
			}
			in.Symbols, in.Shape, n = append(in.Symbols, d.Symbol), append(in.Shape, size), n*size
		}
		for i := range n {
			switch {
			case spec.Name == "mel_lengths":
				in.Data = binary.LittleEndian.AppendUint32(in.Data, uint32(lengths[i]))
			case len(in.Shape) == 1:
				in.Data = binary.LittleEndian.AppendUint32(in.Data, 6)
			case spec.DType == manifest.F32:
				in.Data = binary.LittleEndian.AppendUint32(in.Data, math.Float32bits(random.Float32()))
			default:
				in.Data = binary.LittleEndian.AppendUint32(in.Data, uint32(3+i%20))
			}
		}
		c.Inputs = append(c.Inputs, in)
	}
	f, err := b.Weights()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range b.Manifest.Parameters {
		data := make([]byte, 4*p.Elements())
		if err := f.Read(p.Name, data); err != nil {
			t.Fatal(err)
		}
		c.Inputs = append(c.Inputs, Input{Kind: Weight, Name: p.Name, DType: manifest.F32, Shape: p.Shape, Data: data})
	}
	c.Inputs = append(c.Inputs, Input{Kind: Scalar, Name: "seed", DType: manifest.I64, Data: make([]byte, 8)})
	return c
}

// plant adds nodes before the one that reads a value, which then reads another one.
type plant struct{ *onnxpb.GraphProto }

func (g plant) number(name string, v float32, dims ...int64) string {
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Dims: dims,
		FloatData: []float32{v},
	})
	return name
}

func (g plant) integers(name string, v ...int64) string {
	g.Initializer = append(g.Initializer, &onnxpb.TensorProto{
		Name: proto.String(name), DataType: proto.Int32(int32(onnxpb.TensorProto_INT64)),
		Dims: []int64{int64(len(v))}, Int64Data: v,
	})
	return name
}

func node(op, out string, in ...string) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}}
	if op == "Cast" {
		n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{
			Name: proto.String("to"), Type: onnxpb.AttributeProto_INT.Enum(),
			I: proto.Int64(int64(onnxpb.TensorProto_FLOAT)),
		})
	}
	if op == "ReduceSum" || op == "ReduceMin" {
		n.Attribute = append(n.Attribute, &onnxpb.AttributeProto{
			Name: proto.String("keepdims"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(0),
		})
	}
	return n
}

// distance are nodes that compute how far each row is from 9 frames.
func (g plant) distance() []*onnxpb.NodeProto {
	return []*onnxpb.NodeProto{
		node("Cast", "planted.length", "mel_lengths"),
		node("Sub", "planted.difference", "planted.length", g.number("planted.9", 9)),
		node("Abs", "planted.distance", "planted.difference"),
	}
}

// add adds a value for each row, times 0, to a tensor of [B, T, C].
func (g plant) add(to string, nodes []*onnxpb.NodeProto, value string) {
	at := slices.IndexFunc(g.Node, func(n *onnxpb.NodeProto) bool { return slices.Contains(n.Output, to) })
	for _, n := range g.Node[at+1:] {
		for i := range n.Input {
			if n.Input[i] == to {
				n.Input[i] = "planted.sum"
			}
		}
	}
	nodes = append(nodes, node("Mul", "planted.zero", value, g.number("planted.0", 0)),
		node("Unsqueeze", "planted.row", "planted.zero", g.integers("planted.axes", 1, 2)),
		node("Add", "planted.sum", to, "planted.row"))
	g.Node = slices.Insert(g.Node, at+1, nodes...)
}

// gradient adds a scalar, times 0, to a gradient.
func (g plant) gradient(of string, nodes []*onnxpb.NodeProto, value string) {
	for _, n := range g.Node {
		for i := range n.Output {
			if n.Output[i] == of {
				n.Output[i] = "planted.before"
			}
		}
	}
	g.Node = append(g.Node, append(nodes, node("Mul", "gradient.zero", value, g.number("gradient.0", 0)),
		node("Add", of, "planted.before", "gradient.zero"))...)
}

// Faults of graphs, and what is found of them.
var faults = []struct {
	name                     string
	plant                    func(g plant)
	operator, value, pass    string
	reads                    float64 // at the first place; 0: another shape
	becomes, after, before   string
	rowsBy                   string
	nan, infinite, manyWorse int
}{
	{
		name: "a logarithm of a negative number", plant: func(g plant) {
			g.add("add_19", append(g.distance(),
				node("Sub", "planted.less", "planted.distance", g.number("planted.half", 0.5)),
				node("Log", "planted.log", "planted.less")), "planted.log")
		},
		operator: "Log", value: "planted.log", pass: "forward", reads: -0.5, nan: 1, rowsBy: "tensor",
		before: "decoder.blocks.0.attention_norm.bias",
	},
	{
		name: "a quotient of 1 and 0", plant: func(g plant) {
			g.add("add_19", append(g.distance(),
				node("Div", "planted.quotient", g.number("planted.1", 1), "planted.distance")), "planted.quotient")
		},
		operator: "Div", value: "planted.quotient", pass: "forward", infinite: 1, becomes: "planted.zero",
		rowsBy: "tensor", before: "decoder.blocks.0.attention_norm.bias",
	},
	{
		name: "the backward pass", plant: func(g plant) {
			g.gradient("grad.mel_head.bias", append(g.distance(),
				node("Div", "planted.quotient", "planted.distance", "planted.distance"),
				node("ReduceSum", "planted.total", "planted.quotient")), "planted.total")
		},
		operator: "Div", value: "planted.quotient", pass: "backward", reads: math.SmallestNonzeroFloat64, nan: 1,
		rowsBy: "tensor", before: "mel_head.bias",
	},
	{
		name: "a number for the batch", plant: func(g plant) {
			g.gradient("grad.mel_head.bias", append(g.distance(),
				node("ReduceMin", "planted.least", "planted.distance"),
				node("Sub", "planted.less", "planted.least", g.number("planted.half", 0.5)),
				node("Sqrt", "planted.root", "planted.less")), "planted.root")
		},
		operator: "Sqrt", value: "planted.root", pass: "backward", reads: -0.5, nan: 1, rowsBy: "alone",
		before: "mel_head.bias",
	},
}

func TestFaults(t *testing.T) {
	for _, tt := range faults {
		t.Run(tt.name, func(t *testing.T) {
			c := step(t)
			tt.plant(plant{c.Model.Graph})
			f, err := Find(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			o := f.Operation
			if f.Where != "operation" || o.Operator != tt.operator || o.Value != tt.value || o.Pass != tt.pass {
				t.Fatalf("%s %+v, want %s %s %s", f.Where, o, tt.operator, tt.value, tt.pass)
			}
			if o.Gives.NaN != tt.nan || o.Gives.Infinite != tt.infinite {
				t.Errorf("it gives %+v, want %d NaN and %d infinities", o.Gives, tt.nan, tt.infinite)
			}
			if tt.reads == math.SmallestNonzeroFloat64 {
				tt.reads = 0
			} else if tt.reads == 0 {
				tt.reads = math.NaN()
			}
			if !math.IsNaN(tt.reads) && (len(o.Reads) == 0 || o.Reads[0].At == nil || *o.Reads[0].At != tt.reads) {
				t.Errorf("it reads %+v, want %v", o.Reads, tt.reads)
			}
			if !slices.Equal(f.Rows, []int{sick}) || f.RowsBy != tt.rowsBy {
				t.Errorf("rows %v by %q, want %d by %q", f.Rows, f.RowsBy, sick, tt.rowsBy)
			}
			became := ""
			if f.Becomes != nil {
				became = f.Becomes.Value
			}
			if became != tt.becomes || o.After != tt.after || o.Before != tt.before {
				t.Errorf("NaN in %q, after %q, before %q; want %q, %q, %q", became, o.After, o.Before, tt.becomes,
					tt.after, tt.before)
			}
			if tt.pass == "backward" && !slices.Equal(f.Outputs, []string{"grad.mel_head.bias"}) {
				t.Errorf("outputs %v", f.Outputs)
			}
		})
	}
}

// TestFirst: of several beginnings, the first in the graph is named, whichever output leads to it.
func TestFirst(t *testing.T) {
	c := step(t)
	g := plant{c.Model.Graph}
	g.gradient("grad.mel_head.bias", []*onnxpb.NodeProto{
		node("Log", "late.log", g.number("late.1", -1)),
	}, "late.log")
	g.add("add_19", append(g.distance(),
		node("Div", "early.quotient", "planted.distance", "planted.distance")), "early.quotient")
	f, err := Find(t.Context(), c)
	if err != nil || f.Operation == nil || f.Operation.Value != "early.quotient" {
		t.Errorf("%+v, %v", f, err)
	}
}

// set sets an element of an input.
func set(t *testing.T, c *Case, name string, at int, v float64) {
	t.Helper()
	i := slices.IndexFunc(c.Inputs, func(in Input) bool { return in.Name == name })
	binary.LittleEndian.PutUint32(c.Inputs[i].Data[4*at:], math.Float32bits(float32(v)))
}

// TestInputs: a tensor of the batch, or a weight, that is not finite itself is named, and nothing that reads it.
func TestInputs(t *testing.T) {
	c := step(t)
	set(t, &c, "mel_spectrograms", 16*20*sick+5, math.NaN())
	f, err := Find(t.Context(), c)
	if err != nil || f.Where != "input" || f.Tensor.Name != "mel_spectrograms" || f.Tensor.NaN != 1 ||
		!slices.Equal(f.Rows, []int{sick}) {
		t.Errorf("NaN in the batch: %+v, %v", f, err)
	}
	c = step(t)
	set(t, &c, "decoder.blocks.0.feed_in.weight", 7, math.Inf(1))
	f, err = Find(t.Context(), c)
	if err != nil || f.Where != "weight" || f.Tensor.Name != "decoder.blocks.0.feed_in.weight" ||
		f.Tensor.Infinite != 1 || len(f.Rows) > 0 {
		t.Errorf("an infinite weight: %+v, %v", f, err)
	}
}

// TestNothing: of a sound step there is nothing to find, and limits hold.
func TestNothing(t *testing.T) {
	c := step(t)
	if f, err := Find(t.Context(), c); err != nil || f.Where != nowhere || f.OutputsBad != 0 {
		t.Errorf("%+v, %v", f, err)
	}
	c.Memory = 1 << 10
	if _, err := Find(t.Context(), c); !errors.Is(err, ErrMemory) {
		t.Errorf("with 1 KiB: %v", err)
	}
	c.Memory = 0
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-late.Done()
	stopped, stop := context.WithCancelCause(t.Context())
	stop(exit.ErrInterrupted)
	for want, ctx := range map[error]context.Context{ErrTime: late, exit.ErrInterrupted: stopped} {
		if _, err := Find(ctx, c); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

// TestNoTimeForRows: what was found counts although there is no time left to run each row alone.
func TestNoTimeForRows(t *testing.T) {
	c := step(t)
	faults[3].plant(plant{c.Model.Graph})
	ctx, cancel := context.WithCancel(t.Context())
	s, err := newSearch(ctx, c)
	if err == nil {
		err = s.test()
	}
	if err != nil {
		t.Fatal(err)
	}
	f := s.origin()
	cancel()
	if err := s.findRows(f, f.Operation.Value, nil); err != nil || f.RowsBy != Unknown || len(f.Rows) > 0 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestLargeNumbers: a tensor whose finite elements add up to an infinity is not taken for the beginning.
func TestLargeNumbers(t *testing.T) {
	c := step(t)
	g := plant{c.Model.Graph}
	g.add("add_19", append(g.distance(),
		node("Add", "large.factor", "planted.distance", g.number("large.9", 9)),
		node("Mul", "large.all", "large.factor", g.number("large.huge", 2e37)), // their sum is about 9e38
		node("Div", "planted.quotient", "large.all", "planted.distance")), "planted.quotient")
	f, err := Find(t.Context(), c)
	if err != nil || f.Operation == nil || f.Operation.Value != "planted.quotient" || f.Operation.Gives.Infinite != 1 {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestOnlyWhatIsDescribed: of the weights, those alone that the operation reads are made floats of, and their memory is
// counted.
func TestOnlyWhatIsDescribed(t *testing.T) {
	c := step(t)
	s, err := newSearch(t.Context(), c)
	if err == nil {
		err = s.test()
	}
	if err != nil {
		t.Fatal(err)
	}
	const weight = "decoder.blocks.0.feed_in.weight"
	values, err := s.fetched([]string{weight})
	if err != nil || len(values) != 1 || len(values[weight].data) == 0 {
		t.Fatalf("%d tensors, %v", len(values), err)
	}
	s.Memory = 1 << 62
	if err := s.checkMemory(1 << 62); !errors.Is(err, ErrMemory) {
		t.Errorf("%v", err)
	}
}

// TestLine: a node that is noted with a line of Python names it.
func TestLine(t *testing.T) {
	trace := "File \"a.py\", line 3, in forward\n  x = f(x)\nFile \"model.py\", line 88, in forward\n  return log(x)"
	noted := func(key, value string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{MetadataProps: []*onnxpb.StringStringEntryProto{{Key: &key, Value: &value}}}
	}
	for want, n := range map[string]*onnxpb.NodeProto{
		"": {}, "m:12": noted("line", "m:12"), "model.py:88": noted("pkg.torch.onnx.stack_trace", trace),
	} {
		if got := lineOf(n); got != want {
			t.Errorf("line %q, want %q", got, want)
		}
	}
}
