package steady

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// maxRank is far more axes than any product or sum has.
const maxRank = 8

// Bucket has the shapes of inputs of a graph, by name. The symbols of other inputs are among theirs.
type Bucket map[string][]int

// Result is a rewritten model.
type Result struct {
	Model []byte
	// Changed is the number of nodes that were rewritten. Without one, Model has the bytes of the original.
	Changed int
	// Unproven names the first node that may have other bits with another number of threads all the same: with one
	// thread only has such a graph the same bits in every run. Empty for the others, which have them with 1 to
	// [Threads] threads.
	Unproven string
}

// Rewrite returns a model in which the bits of products and sums do not depend on the number of threads, in the
// buckets. Without buckets nothing is rewritten.
func Rewrite(model []byte, buckets []Bucket) (Result, error) {
	m := new(onnxpb.ModelProto)
	if err := proto.Unmarshal(model, m); err != nil {
		return Result{}, err
	}
	found, known, err := unsteady(m, buckets)
	if err != nil {
		return Result{}, err
	}
	result := Result{Model: model, Changed: len(found), Unproven: unproven(m, known, len(buckets))}
	if len(found) == 0 {
		return result, nil
	}
	r := &rewriter{sources: map[string]*onnxpb.NodeProto{}, names: map[string]bool{}}
	for _, n := range m.Graph.Node {
		for _, name := range n.Output {
			r.sources[name], r.names[name] = n, true
		}
	}
	var nodes []*onnxpb.NodeProto
	for _, n := range m.Graph.Node {
		if at, ok := found[n]; ok {
			nodes = append(nodes, r.rewrite(m, n, at)...)
			continue
		}
		nodes = append(nodes, n)
	}
	m.Graph.Node = nodes
	result.Model, err = proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return result, err
}

// finding is what a rewrite needs to know of a node.
type finding struct {
	rank int
	axes []int64 // of a sum
}

// unsteady finds the nodes of the graph whose bits depend on the number of threads in some bucket. known counts the
// buckets in which it could judge a product or a sum.
func unsteady(
	m *onnxpb.ModelProto, buckets []Bucket,
) (found map[*onnxpb.NodeProto]finding, known map[*onnxpb.NodeProto]int, err error) {
	own := map[*onnxpb.NodeProto]bool{}
	found, known = map[*onnxpb.NodeProto]finding{}, map[*onnxpb.NodeProto]int{}
	for _, n := range m.Graph.Node {
		own[n] = true
	}
	for _, bucket := range buckets {
		r, err := shapes.Infer(m, sizes(m, bucket))
		if err != nil {
			return nil, nil, err
		}
		for _, n := range r.Nodes {
			if !own[n.Proto] || !n.Input(0).Known() {
				continue
			}
			f, at, ok := judge(n)
			if !ok {
				continue
			}
			known[n.Proto]++
			if _, already := found[n.Proto]; at && !already {
				found[n.Proto] = f
			}
		}
	}
	return found, known, nil
}

// judge reports whether the bits of a node depend on the number of threads. ok is false if that is not known, or if it
// is neither a product nor a sum.
func judge(n *shapes.Node) (f finding, depends, ok bool) {
	float, rank := n.In[0].Type == onnxpb.TensorProto_FLOAT, len(n.In[0].Shape)
	switch {
	case isProduct[n.Op()]:
		ways := products(n)
		ok = float && rank > 1 && rank <= maxRank && n.Integer("transBatchA", 0) == 0 &&
			n.Integer("transBatchB", 0) == 0 && ways != nil
		return finding{rank: rank}, ok && slices.ContainsFunc(ways, product.unsteady), ok
	case isSum[n.Op()]:
		if list, _, known := n.Integers(1, "axes"); known && len(list) == 0 {
			return f, false, true // one result, or nothing to do
		}
		axes, of := axesOf(n)
		if ok = float && of && rank <= maxRank; !ok {
			// whole numbers have no rounding
			return f, false, !float && n.Op() == "ReduceSum" && wholeNumbers[n.In[0].Type]
		}
		return finding{rank, axes}, sumUnsteady(n.In[0].Shape, axes), true
	}
	return f, false, false
}

// wholeNumbers are the types of whole numbers that sums have.
var wholeNumbers = map[shapes.Type]bool{onnxpb.TensorProto_INT32: true, onnxpb.TensorProto_INT64: true}

// sizes gives the symbols of the graph's inputs their values in a bucket.
func sizes(m *onnxpb.ModelProto, bucket Bucket) shapes.Sizes {
	s := shapes.Sizes{}
	for _, in := range m.Graph.Input {
		dims := in.GetType().GetTensorType().GetShape().GetDim()
		shape, ok := bucket[in.GetName()]
		if !ok || len(shape) != len(dims) {
			continue
		}
		for i, d := range dims {
			if symbol := d.GetDimParam(); symbol != "" {
				s[symbol] = shape[i]
			}
		}
	}
	return s
}

// axesOf returns the axes of a sum, counted from 0; ok is false if they are unknown.
func axesOf(n *shapes.Node) (axes []int64, ok bool) {
	axes, given, ok := n.Integers(1, "axes")
	if !ok || !given || len(axes) == 0 {
		return nil, false // all axes, or none
	}
	axes = slices.Clone(axes)
	for i := range axes {
		if axes[i] < 0 {
			axes[i] += int64(len(n.In[0].Shape))
		}
	}
	slices.Sort(axes)
	return axes, true
}

// rewriter makes nodes with new names.
type rewriter struct {
	sources map[string]*onnxpb.NodeProto
	names   map[string]bool
}

func (r *rewriter) rewrite(m *onnxpb.ModelProto, n *onnxpb.NodeProto, f finding) []*onnxpb.NodeProto {
	if f.axes != nil {
		return r.sum(n, f)
	}
	return r.product(m, n, f)
}

// product has the product transpose its left operand, which another node has transposed before.
func (r *rewriter) product(m *onnxpb.ModelProto, n *onnxpb.NodeProto, f finding) []*onnxpb.NodeProto {
	out := proto.Clone(n).(*onnxpb.NodeProto)
	if out.GetOpType() == "MatMul" {
		out.OpType, out.Domain = proto.String("FusedMatMul"), proto.String("com.microsoft")
		if !slices.ContainsFunc(m.OpsetImport, func(o *onnxpb.OperatorSetIdProto) bool {
			return o.GetDomain() == "com.microsoft"
		}) {
			m.OpsetImport = append(m.OpsetImport,
				&onnxpb.OperatorSetIdProto{Domain: proto.String("com.microsoft"), Version: proto.Int64(1)})
		}
	}
	setInteger(out, "transA", 1)
	if source := r.sources[n.Input[0]]; source != nil && swapsLast(source, f.rank) { // two transpositions are none
		out.Input[0] = source.Input[0]
		return []*onnxpb.NodeProto{out}
	}
	order := make([]int64, f.rank)
	for i := range order {
		order[i] = int64(i)
	}
	order[f.rank-1], order[f.rank-2] = order[f.rank-2], order[f.rank-1]
	turn := r.turn(n, order)
	out.Input[0] = turn.Output[0]
	return []*onnxpb.NodeProto{turn, out}
}

// moved moves the axes of a sum to the end.
func (r *rewriter) moved(n *onnxpb.NodeProto, f finding) []*onnxpb.NodeProto {
	var order []int64
	for i := range int64(f.rank) {
		if !slices.Contains(f.axes, i) {
			order = append(order, i)
		}
	}
	kept := len(order)
	order = append(order, f.axes...)
	turn := r.turn(n, order)
	var last []int64
	for i := kept; i < f.rank; i++ {
		last = append(last, int64(i))
	}
	out := proto.Clone(n).(*onnxpb.NodeProto)
	out.Input[0] = turn.Output[0]
	keeps := integer(n, "keepdims", 1) != 0
	setInteger(out, "keepdims", 0)
	nodes := []*onnxpb.NodeProto{turn}
	if len(n.Input) > 1 { // axes are an input since opset 13 (ReduceSum) and 18
		axes := constant(r.name(n), last)
		out.Input[1] = axes.Output[0]
		nodes = append(nodes, axes)
	} else {
		for _, a := range out.Attribute {
			if a.GetName() == "axes" {
				a.Ints = last
			}
		}
	}
	if !keeps {
		return append(nodes, out)
	}
	out.Output[0] = r.name(n)
	axes := constant(r.name(n), f.axes)
	return append(nodes, out, axes, &onnxpb.NodeProto{
		OpType: proto.String("Unsqueeze"), Input: []string{out.Output[0], axes.Output[0]}, Output: n.Output[:1],
	})
}

// turn is a node that puts the axes of the first input into another order. It is an Einsum, because the library moves a
// Transpose through a sum, and removes one before a product that transposes.
func (r *rewriter) turn(n *onnxpb.NodeProto, order []int64) *onnxpb.NodeProto {
	const letters = "abcdefghijklmnop"
	equation := letters[:len(order)] + "->"
	for _, axis := range order {
		equation += letters[axis : axis+1]
	}
	return &onnxpb.NodeProto{
		OpType: proto.String("Einsum"), Input: n.Input[:1], Output: []string{r.name(n)},
		Attribute: []*onnxpb.AttributeProto{
			{Name: proto.String("equation"), Type: onnxpb.AttributeProto_STRING.Enum(), S: []byte(equation)},
		},
	}
}

// name makes a name that the graph does not have.
func (r *rewriter) name(n *onnxpb.NodeProto) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("%s.steady%d", n.Output[0], i); !r.names[name] {
			r.names[name] = true
			return name
		}
	}
}

// constant is a node with a vector of integers.
func constant(name string, values []int64) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{
		OpType: proto.String("Constant"), Output: []string{name}, Attribute: []*onnxpb.AttributeProto{{
			Name: proto.String("value_ints"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: values,
		}},
	}
}

// swapsLast reports whether a node transposes the matrices in a tensor of that rank.
func swapsLast(n *onnxpb.NodeProto, rank int) bool {
	if n.GetOpType() != "Transpose" || n.GetDomain() != "" {
		return false
	}
	want := make([]int64, rank)
	for i := range want {
		want[i] = int64(i)
	}
	want[rank-1], want[rank-2] = want[rank-2], want[rank-1]
	for _, a := range n.Attribute {
		if a.GetName() == "perm" {
			return slices.Equal(a.Ints, want)
		}
	}
	return rank == 2
}

func integer(n *onnxpb.NodeProto, name string, otherwise int64) int64 {
	for _, a := range n.Attribute {
		if a.GetName() == name {
			return a.GetI()
		}
	}
	return otherwise
}

func setInteger(n *onnxpb.NodeProto, name string, value int64) {
	n.Attribute = slices.DeleteFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.GetName() == name })
	n.Attribute = append(n.Attribute, whole(name, value))
}
