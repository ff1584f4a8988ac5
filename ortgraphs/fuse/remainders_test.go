package fuse_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// TestRepeatedRemainders: the hash of a row or of a column for the mask of dropout is computed once, and not at each
// place that reads it.
func TestRepeatedRemainders(t *testing.T) {
	const prime = 46337
	b := &builder{graph: &onnxpb.GraphProto{Name: proto.String("remainders")}}
	b.graph.Input = append(b.graph.Input, info("x", []int{16, 32}), info("rows", []int{16, 1}),
		info("columns", []int{32}))
	integer, long := onnxpb.TensorProto_INT32, onnxpb.TensorProto_INT64
	hash := func(axis string, salt int) string {
		x := b.add("Add", b.add("Cast", b.add("Mul", axis, b.number(1e6)), to(long)), b.numbers(salt))
		return b.add("Cast", b.add("Mod", b.add("Mul", x, x), b.numbers(prime)), to(integer))
	}
	divisor := b.add("Cast", b.numbers(prime), to(integer))
	for site := range 2 {
		row, column := hash("rows", 100*site+1), hash("columns", 100*site+2)
		y := b.add("Mod", b.add("Add", b.add("Mul", row, column), row), divisor)
		y = b.add("Mod", b.add("Add", b.add("Mul", y, y), column), divisor)
		keep := b.add("Cast", b.add("GreaterOrEqual", y, b.add("Cast", b.numbers(prime/2), to(integer))),
			to(onnxpb.TensorProto_FLOAT))
		b.graph.Output = append(b.graph.Output, info(b.add("Mul", "x", keep), nil))
	}
	model := &onnxpb.ModelProto{
		IrVersion: proto.Int64(9), Graph: b.graph,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(20)}},
	}
	_, g, regions := partition(t, model, shapes.Sizes{})
	masks := 0
	for _, r := range regions {
		for _, n := range r.Nodes {
			if n.Op != "Mod" {
				continue
			}
			if most, ok := n.Out[0].Most(); !ok || most != prime-1 {
				t.Errorf("%s is at most %d, %t", n.Out[0].Name, most, ok)
			}
			if large := elements(r.Domain) == 16*32; large && n.Out[0].Type == long {
				t.Errorf("the hash %s is computed over %v", n.Out[0].Name, r.Domain)
			} else if large {
				masks++
				if _, ok := n.In[0].Tensor.Most(); !ok {
					t.Errorf("the range of %s is not known", n.In[0].Tensor.Name)
				}
			}
		}
	}
	if masks != 4 {
		t.Errorf("%d remainders at each place, want 4", masks)
	}
	got, want := computed(t, g, regions), plainly(t, model)
	for i, o := range g.Outputs {
		if !slices.Equal(got[o.Tensor], want[i]) {
			t.Errorf("%s has other bits", o.Name)
		}
	}
}

// TestRemaindersOfAttention: attention reads the hash of a row, also if all heads together have more rows than a head
// has scores.
func TestRemaindersOfAttention(t *testing.T) {
	a := attending{batch: 4, heads: 8, queries: 16, keys: 16, head: 16, forward: true, dropout: true, form: "hashes"}
	_, g, regions := partition(t, a.model(), shapes.Sizes{})
	if forward, _ := regionsOf(regions); forward != 1 {
		t.Fatalf("%d regions of attention", forward)
	}
	for _, r := range regions {
		if attentionOf(r) != nil && slices.ContainsFunc(r.Nodes, func(n *fuse.Node) bool {
			return n.Op == "Mod" && n.Out[0].Type == onnxpb.TensorProto_INT64
		}) {
			t.Errorf("attention computes %s", r.Ops())
		}
	}
	emit(t, g, regions)
}

// hashes adds a mask as the exporter writes it, of a hash of the row and one of the column.
func (a *attending) hashes() {
	const prime, i32 = 46337, onnxpb.TensorProto_INT32
	hash := func(name string, shape ...int) string {
		x := a.input(name, i64, shape...)
		return a.cast(a.node("Mod", name+".residue", nil, a.node("Mul", name+".square", nil, x, x), a.ints(prime)),
			name+".hash", i32)
	}
	row, column := hash("rows", a.batch, a.heads, a.queries, 1), hash("columns", a.keys)
	divisor := a.cast(a.ints(prime), "divisor", i32)
	y := a.node("Mod", "mixed", nil, a.node("Add", "sum.of.both", nil, a.node("Mul", "of.both", nil, row, column), row),
		divisor)
	y = a.node("Mod", "mixed.again", nil,
		a.node("Add", "sum.again", nil, a.node("Mul", "mixed.square", nil, y, y), column), divisor)
	a.node("GreaterOrEqual", "kept", nil, y, a.cast(a.ints(2), "least", i32))
}

// TestMost: the range of integers follows from remainders by constants, and ends where a product could overflow.
func TestMost(t *testing.T) {
	const long = onnxpb.TensorProto_INT64
	node := func(op string, kind onnxpb.TensorProto_DataType, in ...*fuse.Tensor) *fuse.Tensor {
		n := &fuse.Node{Op: op}
		for _, x := range in {
			n.In = append(n.In, fuse.Operand{Tensor: x})
		}
		y := &fuse.Tensor{Name: op, Type: kind, Shape: []int{4}, From: n}
		n.Out = []*fuse.Tensor{y}
		return y
	}
	number := func(x float64) *fuse.Tensor { return &fuse.Tensor{Type: long, Constant: true, Data: []float64{x}} }
	x := &fuse.Tensor{Name: "x", Type: long, Shape: []int{4}}
	rest := func(divisor float64) *fuse.Tensor { return node("Mod", long, x, number(divisor)) }
	narrow := func(t *fuse.Tensor) *fuse.Tensor { return node("Cast", onnxpb.TensorProto_INT32, t) }
	square := func(t *fuse.Tensor) *fuse.Tensor { return node("Mul", t.Type, t, t) }
	for name, c := range map[string]struct {
		t    *fuse.Tensor
		most int
	}{
		"an input": {x, -1}, "a remainder": {rest(7), 6}, "a negative divisor": {rest(-7), -1},
		"no constant": {node("Mod", long, x, rest(7)), -1}, "a sum": {node("Add", long, rest(7), number(3)), 9},
		"a sum of what may be negative": {node("Add", long, rest(7), x), -1},
		"a negative number":             {node("Add", long, rest(7), number(-1)), -1},
		"a difference":                  {node("Sub", long, rest(7), rest(3)), -1},
		"a product":                     {square(narrow(rest(46337))), 46336 * 46336},
		"a product that overflows":      {square(narrow(rest(46343))), -1},
		"a product of 64 bits":          {square(square(rest(46343))), 46342 * 46342 * 46342 * 46342},
		"more than 64 bits":             {square(square(square(rest(46343)))), -1},
		"too large for the type":        {narrow(square(rest(46343))), -1},
		"other types":                   {node("Cast", onnxpb.TensorProto_FLOAT, rest(7)), -1},
	} {
		if most, ok := c.t.Most(); ok != (c.most >= 0) || ok && most != c.most {
			t.Errorf("%s: at most %d, %t; want %d", name, most, ok, c.most)
		}
	}
}
