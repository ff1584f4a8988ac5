package nantrace

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// cpu is where outputs are allocated.
const cpu = ort.Host

// readsOf returns what a node reads, also in its inner graphs, in a fixed order.
func readsOf(n *onnxpb.NodeProto) []string {
	var names []string
	for name := range prune.Reads(n) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func isGradient(output string) bool { return strings.HasPrefix(output, "grad.") }

// with returns a model with more nodes and other outputs.
func with(model *onnxpb.ModelProto, nodes []*onnxpb.NodeProto, outputs []*onnxpb.ValueInfoProto) *onnxpb.ModelProto {
	g := model.Graph
	return &onnxpb.ModelProto{
		IrVersion: model.IrVersion, OpsetImport: model.OpsetImport, Functions: model.Functions,
		ProducerName: model.ProducerName,
		Graph: &onnxpb.GraphProto{
			Name: g.Name, Input: g.Input, Initializer: g.Initializer, SparseInitializer: g.SparseInitializer,
			Node: append(slices.Clone(g.Node), nodes...), Output: outputs,
		},
	}
}

// output declares an output of floats, of any shape.
func output(name string, of onnxpb.TensorProto_DataType) *onnxpb.ValueInfoProto {
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{
		Value: &onnxpb.TypeProto_TensorType{TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(of))}},
	}}
}

// small is by what elements are multiplied before they are summed up: no sum of finite ones overflows then, and what is
// not finite stays so.
const small = 0x1p-60

// factor is the constant small in a type.
func factor(of onnxpb.TensorProto_DataType) (*onnxpb.NodeProto, string) {
	name := "nantrace.small." + of.String()
	value := &onnxpb.TensorProto{DataType: proto.Int32(int32(of))}
	if of == onnxpb.TensorProto_DOUBLE {
		value.DoubleData = []float64{small}
	} else {
		value.FloatData = []float32{small}
	}
	return &onnxpb.NodeProto{
		OpType: proto.String("Constant"), Output: []string{name},
		Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String("value"), Type: onnxpb.AttributeProto_TENSOR.Enum(), T: value,
		}},
	}, name
}

// sum returns the nodes that sum up the magnitudes of a tensor times small, and its result: NaN if an element is, else
// infinite if one is. ReduceMax would hide NaN.
func sum(name, small string) ([]*onnxpb.NodeProto, string) {
	scaled, result := "nantrace.small.of."+name, resultOf(name)
	return []*onnxpb.NodeProto{
		{OpType: proto.String("Mul"), Input: []string{name, small}, Output: []string{scaled}},
		{
			OpType: proto.String("ReduceL1"), Input: []string{scaled}, Output: []string{result},
			Attribute: []*onnxpb.AttributeProto{{
				Name: proto.String("keepdims"), Type: onnxpb.AttributeProto_INT.Enum(), I: proto.Int64(0),
			}},
		},
	}, result
}

// resultOf names the sum of a tensor.
func resultOf(name string) string { return "nantrace.sum.of." + name }

// tested says which tensors are not finite, with these inputs.
func (s *search) tested(names []string, inputs []Input) (map[string]flaw, error) {
	var nodes []*onnxpb.NodeProto
	var outputs []*onnxpb.ValueInfoProto
	factors := map[onnxpb.TensorProto_DataType]string{}
	for _, name := range names {
		dtype := s.shaped.Value(name).Type
		if factors[dtype] == "" {
			n, of := factor(dtype)
			nodes, factors[dtype] = append(nodes, n), of
		}
		more, result := sum(name, factors[dtype])
		nodes = append(nodes, more...)
		outputs = append(outputs, output(result, dtype))
	}
	out := map[string]flaw{}
	err := s.run(with(s.Model, nodes, outputs), inputs, func(results map[string]*ort.Tensor) {
		for _, name := range names {
			v := floats(results[resultOf(name)])[0]
			out[name] = flaw{math.IsNaN(v), math.IsInf(v, 0)}
		}
	})
	return out, err
}

// test tests every tensor.
func (s *search) test() (err error) {
	s.flaws, err = s.tested(s.values, s.Inputs)
	return err
}

// fetch returns tensors of the graph as floats.
func (s *search) fetch(names []string) (map[string]tensor, error) {
	var outputs []*onnxpb.ValueInfoProto
	for _, name := range names {
		outputs = append(outputs, output(name, s.shaped.Value(name).Type))
	}
	out := map[string]tensor{}
	return out, s.run(with(s.Model, nil, outputs), s.Inputs, func(results map[string]*ort.Tensor) {
		for name, t := range results {
			out[name] = tensor{slices.Clone(t.Shape()), floats(t)}
		}
	})
}

// tensor is one of the graph, in memory of Go.
type tensor struct {
	shape []int
	data  []float64
}

func floats(t *ort.Tensor) []float64 {
	if t.DType() == manifest.F64 {
		return slices.Clone(ort.View[float64](t.Bytes()))
	}
	values := ort.View[float32](t.Bytes())
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = float64(v)
	}
	return out
}

// run runs a model once and calls take with its outputs.
func (s *search) run(model *onnxpb.ModelProto, inputs []Input, take func(map[string]*ort.Tensor)) (err error) {
	model, err = prune.Model(model, func(string) bool { return true })
	if err != nil {
		return err
	}
	data, err := proto.Marshal(model)
	if err != nil {
		return err
	}
	r := &search{} // closes what this run opens
	defer func() { err = errors.Join(err, r.close()) }()
	session, err := ort.NewSession(ort.SessionConfig{
		Model: data, Dir: s.Dir, Name: "the graph that is traced", Threads: s.Threads, Unoptimized: true,
	})
	if err != nil {
		return err
	}
	r.closers = append(r.closers, session.Close)
	b, err := session.NewBinding()
	if err != nil {
		return err
	}
	r.closers = append(r.closers, b.Close)
	wanted := map[string]bool{}
	for _, v := range model.Graph.Input {
		wanted[v.GetName()] = true
	}
	for _, in := range inputs {
		if !wanted[in.Name] {
			continue
		}
		t, err := r.tensor(in)
		if err != nil {
			return err
		}
		b.BindInput(in.Name, t)
	}
	for _, v := range model.Graph.Output {
		b.BindOutputAt(v.GetName(), cpu)
	}
	if err := s.timed(b); err != nil {
		return err
	}
	results, err := b.Outputs()
	if err != nil {
		return err
	}
	for _, t := range results {
		r.closers = append(r.closers, t.Close)
	}
	take(results)
	return nil
}

// tensor copies an input to memory outside the Go heap.
func (s *search) tensor(in Input) (*ort.Tensor, error) {
	buf, err := ort.NewBuffer(max(1, len(in.Data)))
	if err != nil {
		return nil, err
	}
	s.closers = append(s.closers, buf.Close)
	copy(buf.Bytes(), in.Data)
	t, err := ort.NewTensor(buf.Bytes(), in.DType, in.Shape)
	if err == nil {
		s.closers = append(s.closers, t.Close)
	}
	return t, err
}

// timed runs a binding until the search is over.
func (s *search) timed(b *ort.Binding) error {
	if err := s.over(); err != nil {
		return err
	}
	o, err := ort.NewRunOptions()
	if err != nil {
		return err
	}
	defer o.Close()
	ended := make(chan struct{})
	stop := context.AfterFunc(s.ctx, func() { o.Terminate(); close(ended) })
	err = b.Run(o)
	if !stop() {
		<-ended
	}
	if errors.Is(err, ort.ErrTerminated) {
		return s.over()
	}
	return err
}

// decoded are the elements of an input of floats.
func decoded(in Input) []float64 {
	out := make([]float64, len(in.Data)/in.DType.Size())
	for i := range out {
		if in.DType == manifest.F64 {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(in.Data[8*i:]))
		} else {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(in.Data[4*i:])))
		}
	}
	return out
}
