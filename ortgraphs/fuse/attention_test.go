package fuse_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/fuse/cudac"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

const short = onnxpb.TensorProto_BFLOAT16

// attending makes up the graph of one attention and its gradient, as PyTorch exports it.
type attending struct {
	batch, heads, queries, keys, head int
	lengths, causal, bias, dropout    bool
	forward                           bool // without the gradient
	merged                            bool // queries, keys and values are parts of one tensor
	// so many of the gradients are parts of one tensor: of keys and values, or of all
	joined         int
	biases         bool // of queries, keys and values: the columns of the gradients are added up
	multiplied     bool // the gradient of the queries is multiplied with a constant
	transposedKeys bool // dK is computed as Q' dS
	// "other values" make the gradient of the weights; the result is written in "columns"; dropout of "hashes";
	// "stacked" gradients; "other dropout" of the gradient; "time first", as in nn.MultiheadAttention; "channels
	// first", as convolutions write them; "scattered" positions, which are not at one distance
	form     string
	penalty  float32 // of keys beyond the length; 0 means 1e4
	added    float32 // of keys after the query: added to their scores, rather than -1e9 instead of them
	infinite bool    // keys beyond the length have a score of minus infinity

	graph *onnxpb.GraphProto
}

func (a *attending) input(name string, kind shapes.Type, shape ...int) string {
	v := info(name, shape)
	v.Type.GetTensorType().ElemType = proto.Int32(int32(kind))
	a.graph.Input = append(a.graph.Input, v)
	return name
}

func (a *attending) output(name string) {
	a.graph.Output = append(a.graph.Output, info(name, nil))
}

func (a *attending) node(op, out string, attributes []*onnxpb.AttributeProto, in ...string) string {
	a.graph.Node = append(a.graph.Node,
		&onnxpb.NodeProto{OpType: proto.String(op), Input: in, Output: []string{out}, Attribute: attributes})
	return out
}

func (a *attending) ints(list ...int) string {
	name := fmt.Sprint("i", list)
	a.graph.Initializer = append(a.graph.Initializer,
		&onnxpb.TensorProto{Name: &name, DataType: proto.Int32(int32(i64)), Dims: []int64{int64(len(list))}})
	for _, x := range list {
		c := a.graph.Initializer[len(a.graph.Initializer)-1]
		c.Int64Data = append(c.Int64Data, int64(x))
	}
	return name
}

func (a *attending) number(x float32, kind shapes.Type) string {
	name := fmt.Sprint(kind, x)
	c := &onnxpb.TensorProto{Name: &name, DataType: proto.Int32(int32(kind))}
	raw := pack([]number{{float64(x), int64(x)}}, kind)
	c.RawData = raw[:shapes.ElementSize(kind)]
	a.graph.Initializer = append(a.graph.Initializer, c)
	return name
}

func (a *attending) cast(x, out string, to shapes.Type) string {
	return a.node("Cast", out, []*onnxpb.AttributeProto{attribute("to", int(to))}, x)
}

func (a *attending) transpose(x, out string, perm ...int) string {
	return a.node("Transpose", out, attributes("perm", perm), x)
}

func (a *attending) operands() (q, k, v string) {
	width := a.heads * a.head
	if !a.merged {
		return a.split(a.input("q", short, a.shape(a.queries)...), a.queries),
			a.split(a.input("k", short, a.shape(a.keys)...), a.keys),
			a.split(a.input("v", short, a.shape(a.keys)...), a.keys)
	}
	a.input("qkv", short, a.batch, a.queries, 3*width)
	names := []string{"q", "k", "v"}
	for i, name := range names {
		a.node("Slice", name, nil, "qkv", a.ints(i*width), a.ints((i+1)*width), a.ints(2))
		names[i] = a.split(name, a.queries)
	}
	return names[0], names[1], names[2]
}

// scores adds what is between the product and the softmax.
func (a *attending) scores(s string) string {
	s = a.cast(a.node("Mul", "scaled", nil, s, a.number(0.25, short)), "scores", f32)
	if a.lengths {
		a.input("lengths", i64, a.batch)
		a.node("Range", "positions", nil, a.number(0, i64), a.number(float32(a.keys), i64), a.number(1, i64))
		a.node("Reshape", "lengths.4", nil, "lengths", a.ints(a.batch, 1, 1, 1))
		a.node("Less", "there", nil, "positions", "lengths.4")
	}
	switch {
	case a.lengths && a.infinite:
		s = a.node("Where", "masked", nil, "there", s, a.number(float32(math.Inf(-1)), f32))
	case a.lengths:
		a.node("Sub", "away", nil, a.cast("there", "there.f", f32), a.number(1, f32))
		s = a.node("Add", "masked", nil, s,
			a.node("Mul", "penalty", nil, "away", a.number(cmp.Or(a.penalty, 1e4), f32)))
	}
	if a.causal {
		a.node("Range", "columns", nil, a.number(0, i64), a.number(float32(a.keys), i64), a.number(1, i64))
		a.node("Range", "rows", nil, a.number(0, i64), a.number(float32(a.queries), i64), a.number(1, i64))
		a.node("Reshape", "rows.2", nil, "rows", a.ints(a.queries, 1))
		a.node("LessOrEqual", "past", nil, "columns", "rows.2")
	}
	switch {
	case a.causal && a.added != 0:
		a.node("Sub", "later", nil, a.cast("past", "past.f", f32), a.number(1, f32))
		s = a.node("Add", "causal", nil, s, a.node("Mul", "later.penalty", nil, "later", a.number(a.added, f32)))
	case a.causal:
		s = a.node("Where", "causal", nil, "past", s, a.number(-1e9, f32))
	}
	if a.bias {
		a.input("bias", f32, a.heads, a.queries, a.keys)
		s = a.node("Add", "biased", nil, s, "bias")
	}
	return s
}

// weights adds what is between the softmax and the product with the values.
func (a *attending) weights(p, out string) string {
	if a.dropout {
		switch {
		case out != "weights":
		case a.form == "hashes":
			a.hashes()
		default:
			a.input("rows.hash", f32, a.heads, a.queries, 1)
			a.input("columns.hash", f32, a.batch, 1, 1, a.keys)
			a.node("Greater", "kept", nil, a.node("Mul", "hash", nil, "rows.hash", "columns.hash"),
				a.number(-0.05, f32))
		}
		scale := float32(1.25)
		if a.form == "other dropout" && out != "weights" {
			scale = 1.5
		}
		p = a.node("Where", out+".kept", nil, "kept", a.node("Mul", out+".scaled", nil, p, a.number(scale, f32)),
			a.number(0, f32))
	}
	return p
}

func (a *attending) model() *onnxpb.ModelProto {
	a.graph = &onnxpb.GraphProto{Name: proto.String("attention")}
	q, k, v := a.operands()
	a.transpose(k, "k.turned", 0, 1, 3, 2)
	s := a.scores(a.node("MatMul", "products", nil, q, "k.turned"))
	p := a.node("Softmax", "softmax", []*onnxpb.AttributeProto{attribute("axis", -1)}, s)
	w := a.cast(a.weights(p, "weights"), "weights.short", short)
	result := a.node("MatMul", "result", nil, w, v)
	if a.form == "columns" {
		a.output(a.transpose(result, "out", 0, 1, 3, 2))
	} else {
		a.output(a.merge(result, "out", a.queries))
	}
	if !a.forward {
		a.backward(q, k, v, p, w)
	}
	seen := map[string]bool{}
	var constants []*onnxpb.TensorProto
	for _, c := range a.graph.Initializer {
		if !seen[c.GetName()] {
			seen[c.GetName()] = true
			constants = append(constants, c)
		}
	}
	a.graph.Initializer = constants
	return &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: a.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
}

func (a *attending) backward(q, k, v, p, w string) {
	grad := a.split(a.input("grad", short, a.shape(a.queries)...), a.queries)
	n := a.batch * a.heads
	dqOut := "dq"
	if a.multiplied {
		dqOut = "dq.scaled"
	}
	result := func(x string, positions int) string {
		if a.form == "stacked" {
			return a.node("Reshape", x+".out", nil, x, a.ints(1, a.batch, a.heads, positions, a.head))
		}
		out := a.merge(x, x+".out", positions)
		if a.joined == 0 || a.joined == 2 && x == dqOut {
			a.gradient(out)
		}
		return out
	}
	result(a.node("MatMul", "dv", nil, a.transpose(w, "weights.turned", 0, 1, 3, 2), grad), a.keys)
	flat := func(x, out string, rows, columns int) string {
		return a.node("Reshape", out, nil, x, a.ints(n, rows, columns))
	}
	flat(grad, "grad.3", a.queries, a.head)
	if a.form == "other values" {
		v = a.split(a.input("other", short, a.batch, a.keys, a.heads*a.head), a.keys)
	}
	a.transpose(flat(v, "v.3", a.keys, a.head), "v.turned", 0, 2, 1)
	a.cast(a.node("MatMul", "dweights", nil, "grad.3", "v.turned"), "dweights.f", f32)
	dp := a.weights(a.node("Reshape", "dweights.4", nil, "dweights.f", a.ints(a.batch, a.heads, a.queries, a.keys)),
		"dp")
	a.node("Mul", "weighted", nil, dp, p)
	a.node("ReduceSum", "sum", nil, "weighted", a.ints(-1))
	a.node("Sub", "ds", nil, "weighted", a.node("Mul", "shared", nil, p, "sum"))
	mask := "ds"
	if a.causal && a.added == 0 {
		mask = a.node("Where", "ds.causal", nil, "past", "ds", a.number(0, f32))
	}
	flat(a.node("Mul", "ds.scaled", nil, a.cast(mask, "ds.short", short), a.number(0.25, short)), "ds.3", a.queries,
		a.keys)
	a.node("Reshape", "dq", nil, a.node("MatMul", "dq.3", nil, "ds.3", flat(k, "k.3", a.keys, a.head)),
		a.ints(a.batch, a.heads, a.queries, a.head))
	if a.multiplied {
		a.node("Mul", dqOut, nil, "dq", a.number(0.3, short))
	}
	result(dqOut, a.queries)
	flat(q, "q.3", a.queries, a.head)
	if a.transposedKeys {
		a.node("Reshape", "dk.4", nil, a.node("MatMul", "dk.3", nil, a.transpose("q.3", "q.turned", 0, 2, 1), "ds.3"),
			a.ints(a.batch, a.heads, a.head, a.keys))
		a.transpose("dk.4", "dk.turned", 0, 3, 1, 2)
		a.output(a.node("Reshape", "dk.out", nil, "dk.turned", a.ints(a.batch, a.keys, a.heads*a.head)))
		return
	}
	a.node("Reshape", "dk", nil, a.node("MatMul", "dk.3", nil, a.transpose("ds.3", "ds.turned", 0, 2, 1), "q.3"),
		a.ints(a.batch, a.heads, a.keys, a.head))
	result("dk", a.keys)
	parts := []string{dqOut + ".out", "dk.out", "dv.out"}[3-max(a.joined, 1):]
	switch {
	case a.form == "stacked": // the query, key and value of a head are neighbours in the operand of the next product
		a.output(a.transpose(a.node("Concat", "stacked", []*onnxpb.AttributeProto{attribute("axis", 0)}, parts...),
			"stacked.out", 1, 3, 2, 0, 4))
	case a.joined > 0 && a.form == "time first":
		a.selected(parts)
	case a.joined > 0:
		a.gradient(a.node("Concat", "joined", []*onnxpb.AttributeProto{attribute("axis", 2)}, parts...))
	}
}

// gradient adds a gradient of [batch, positions, columns] to the outputs. With biases, a product reads it and the
// gradient of the bias is an output, as in a model.
func (a *attending) gradient(x string) {
	if !a.biases {
		a.output(x)
		return
	}
	width := a.heads * a.head
	if x == "joined" {
		width *= a.joined
	}
	a.output(a.node("MatMul", x+".product", nil, x, a.input(x+".weights", short, width, 16)))
	a.columnSums(x, 0, 1)
}

// columnSums adds the sums of a result over some dimensions to the outputs.
func (a *attending) columnSums(x string, dimensions ...int) {
	a.output(a.node("ReduceSum", x+".sums", []*onnxpb.AttributeProto{attribute("keepdims", 0)}, a.cast(x, x+".f", f32),
		a.ints(dimensions...)))
}

// given makes up the inputs of a graph; the second row of a batch is short, the last one is empty.
func given(g *fuse.Graph) memory {
	random := rand.New(rand.NewPCG(3, 4))
	m := memory{}
	for _, in := range g.Inputs {
		x := make([]float64, in.Elements())
		for i := range x {
			x[i] = random.NormFloat64() / 2
			if in.Name == "lengths" {
				x[i] = float64([]int{7, 5, 0}[min(i, 2)])
			}
		}
		m[in] = encode(x, in.Type)
	}
	return m
}

// regionsOf counts the regions of attention, forward and backward.
func regionsOf(regions []*fuse.Region) (forward, backward int) {
	for _, r := range regions {
		switch {
		case attentionOf(r) == nil:
		case attentionOf(r).Backward == nil:
			forward++
		default:
			backward++
		}
	}
	return forward, backward
}

// attention adds the regions of attentions with any function of scores and places.
func (k *kernels) attention(t *testing.T) {
	t.Helper()
	k.attend(t, []attending{
		{batch: 1, heads: 2, queries: 20, keys: 17, head: 80, forward: true},
		{batch: 3, heads: 2, queries: 9, keys: 70, head: 16, lengths: true, penalty: 1e9},
		{batch: 3, heads: 2, queries: 9, keys: 70, head: 16, lengths: true, penalty: 3e38},
		{batch: 1, heads: 1, queries: 70, keys: 66, head: 64},
		{batch: 2, heads: 1, queries: 9, keys: 11, head: 16, form: "other values"},
		{batch: 1, heads: 2, queries: 10, keys: 9, head: 16, form: "columns"},
		{batch: 3, heads: 2, queries: 9, keys: 11, head: 16, lengths: true, transposedKeys: true},
		{batch: 1, heads: 2, queries: 66, keys: 66, head: 32, causal: true, merged: true},
		{batch: 2, heads: 2, queries: 33, keys: 21, head: 48, bias: true, dropout: true},
		{batch: 1, heads: 1, queries: 20, keys: 24, head: 128, dropout: true, causal: true},
		{batch: 2, heads: 3, queries: 9, keys: 24, head: 16, dropout: true, form: "hashes"},
		// two passes over several blocks
		{batch: 3, heads: 1, queries: 140, keys: 134, head: 16, lengths: true, dropout: true, form: "other dropout"},
		{batch: 2, heads: 1, queries: 70, keys: 66, head: 80, lengths: true, dropout: true},
		{batch: 3, heads: 1, queries: 9, keys: 70, head: 16, lengths: true, infinite: true},
		{batch: 1, heads: 1, queries: 140, keys: 140, head: 48, causal: true, merged: true},
		{batch: 3, heads: 1, queries: 130, keys: 150, head: 16, causal: true, lengths: true, penalty: 1e9},
		{batch: 3, heads: 1, queries: 130, keys: 130, head: 16, causal: true, lengths: true, infinite: true},
		{batch: 3, heads: 1, queries: 200, keys: 130, head: 16, causal: true, lengths: true, added: 1e4},
		{batch: 1, heads: 1, queries: 70, keys: 130, head: 16, causal: true, added: 2},
		{batch: 2, heads: 1, queries: 140, keys: 134, head: 16, bias: true, dropout: true},
		{batch: 2, heads: 2, queries: 20, keys: 20, head: 16, merged: true, joined: 3, multiplied: true},
		{batch: 2, heads: 2, queries: 9, keys: 11, head: 16, joined: 2},
		{batch: 2, heads: 3, queries: 20, keys: 20, head: 16, form: "stacked", joined: 3},
		{batch: 2, heads: 2, queries: 9, keys: 11, head: 16, multiplied: true},
		{batch: 3, heads: 2, queries: 200, keys: 130, head: 16, lengths: true, biases: true},
		{batch: 2, heads: 1, queries: 70, keys: 66, head: 80, biases: true},
		{batch: 1, heads: 2, queries: 9, keys: 130, head: 128, biases: true, joined: 2},
		{
			batch: 2, heads: 2, queries: 140, keys: 140, head: 48, biases: true, merged: true, joined: 3,
			multiplied: true,
		},
		{batch: 3, heads: 2, queries: 9, keys: 70, head: 16, lengths: true, form: "time first", multiplied: true},
		{
			batch: 3, heads: 2, queries: 9, keys: 9, head: 16, form: "time first", multiplied: true, joined: 3,
			biases: true,
		},
		{batch: 3, heads: 2, queries: 8, keys: 72, head: 16, lengths: true, form: "channels first"},
		{batch: 3, heads: 2, queries: 9, keys: 66, head: 16, lengths: true, form: "scattered", multiplied: true},
	})
}

// attend adds the kernels of some attentions.
func (k *kernels) attend(t *testing.T, list []attending) {
	t.Helper()
	for _, a := range list {
		_, g, regions := partition(t, a.model(), shapes.Sizes{})
		forward, backward := regionsOf(regions)
		if forward != 1 || backward != 1 != a.forward {
			t.Errorf("%+v: %d regions of attention, %d of its gradient", a, forward, backward)
		}
		if slices.ContainsFunc(regions, func(r *fuse.Region) bool { return strings.Contains(r.Ops(), "Concat") }) {
			t.Errorf("%+v: the gradients are joined in a region of their own", a)
		}
		want := 0
		if a.biases {
			want = []int{3, 0, 2, 1}[a.joined]
		}
		if columnSums(regions) != want {
			t.Errorf("%+v: the kernels of attention add up the columns of %d tensors, want %d", a, columnSums(regions),
				want)
		}
		emit(t, g, regions)
		m, err := interpret(g, regions, given(g))
		if err != nil {
			t.Fatal(err)
		}
		k.add(t, regions, m)
	}
}

// TestAttentionKernels: the kernels of attention compute what the graph says.
func TestAttentionKernels(t *testing.T) {
	var k kernels
	k.attention(t)
	k.complete(t, 36)
	k.check(t, &emulation{}, 2e-2)
	if !k.unreached {
		t.Error("a causal row's later keys are in reach")
	}
}

// TestGenerateChangesNothing: a region's program is the same again, also where the backward pass cannot use its result.
func TestGenerateChangesNothing(t *testing.T) {
	a := attending{batch: 1, heads: 2, queries: 10, keys: 9, head: 16, form: "columns"}
	_, _, regions := partition(t, a.model(), shapes.Sizes{})
	for _, r := range regions {
		if attentionOf(r) == nil || attentionOf(r).Backward == nil {
			continue
		}
		first, err := cudac.Generate(r, cudac.Target{})
		if err != nil {
			t.Fatal(err)
		}
		if attentionOf(r).Backward.Result == nil {
			t.Error("the region has lost its result")
		}
		if again, err := cudac.Generate(r, cudac.Target{}); err != nil || again.Source != first.Source {
			t.Errorf("another program: %v", err)
		}
		return
	}
	t.Error("no gradient of attention")
}
