// Package lifetime computes how long the values of a graph stay in memory when ONNX Runtime runs it, and how much
// memory that takes.
//
// ONNX Runtime decides both when it opens a session, from the graph alone: the order of the nodes
// (core/graph/graph_viewer.cc), and which values share a buffer (core/framework/allocation_planner.cc). A buffer is
// allocated before the node that writes it, and freed after the last one that reads it. Not counted are what kernels
// need while they run, and that ONNX Runtime changes a graph before it plans it and computes some nodes in place; both
// are rare in fused graphs.
package lifetime

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Plan says when the buffers of a graph are in memory.
type Plan struct {
	// Nodes are in the order in which they run.
	Nodes []*shapes.Node
	// Buffers are in the order in which they are allocated. The inputs, outputs and constants of the graph have none.
	Buffers []*Buffer
}

// Buffer is the memory of a value between two nodes, and of others after it.
type Buffer struct {
	// Values are those that the buffer has one after the other, with their views.
	Values []*shapes.Value
	Bytes  int64
	// First and Last are the positions of the nodes before and after which it is allocated and freed.
	First, Last int
}

// planning is a plan in the making.
type planning struct {
	*Plan
	of    map[*shapes.Value]*Buffer
	uses  map[*Buffer]int
	reads map[*shapes.Value]int
	kept  map[*shapes.Value]bool
	free  []*Buffer // most recently freed last
}

// Of plans a graph whose shapes are known.
func Of(r *shapes.Result) *Plan {
	p := &planning{
		Plan: &Plan{Nodes: order(r)}, of: map[*shapes.Value]*Buffer{}, uses: map[*Buffer]int{},
		reads: map[*shapes.Value]int{}, kept: map[*shapes.Value]bool{},
	}
	for _, v := range r.Outputs {
		p.kept[v] = true
	}
	for _, n := range p.Nodes {
		for _, v := range n.Reads() {
			p.reads[v]++
		}
	}
	for i, n := range p.Nodes {
		p.step(i, n)
	}
	return p.Plan
}

// OfFile plans the graph of an ONNX file. sizes are those of the graph's symbols.
func OfFile(file []byte, sizes shapes.Sizes) (*Plan, error) {
	model := &onnxpb.ModelProto{}
	if err := proto.Unmarshal(file, model); err != nil {
		return nil, err
	}
	r, err := shapes.Infer(model, sizes)
	if err != nil {
		return nil, err
	}
	return Of(r), nil
}

// step allocates what a node writes and frees what no later node reads.
func (p *planning) step(at int, n *shapes.Node) {
	for _, v := range n.Out {
		if v == nil || p.kept[v] {
			continue
		}
		if n.IsView() {
			if b := p.of[n.Input(0)]; b != nil {
				p.put(v, b)
			}
			continue
		}
		b := p.reusable(v)
		if b == nil {
			b = &Buffer{Bytes: v.Bytes(), First: at}
			p.Buffers = append(p.Buffers, b)
		}
		p.put(v, b)
	}
	for _, v := range slices.Concat(n.Reads(), n.Out) {
		b := p.of[v]
		if b == nil {
			continue
		}
		if p.uses[b]--; p.uses[b] == 0 {
			b.Last = at
			p.free = append(p.free, b)
		}
	}
}

// put places a value in a buffer.
func (p *planning) put(v *shapes.Value, b *Buffer) {
	b.Values = append(b.Values, v)
	p.of[v] = b
	p.uses[b] += p.reads[v] + 1
}

// reusable returns the last buffer that was freed whose value had the same shape and size of elements. ONNX Runtime
// keeps such a buffer until then.
func (p *planning) reusable(v *shapes.Value) *Buffer {
	if len(v.Shape) == 0 {
		return nil
	}
	for i, b := range slices.Backward(p.free) {
		first := b.Values[0]
		if slices.Equal(first.Shape, v.Shape) && shapes.ElementSize(first.Type) == shapes.ElementSize(v.Type) {
			p.free = slices.Delete(p.free, i, i+1)
			return b
		}
	}
	return nil
}

// Peak returns the largest memory of the buffers at one time, and the position of the node that runs then.
func (p *Plan) Peak() (bytes int64, at int) {
	changes := make([]int64, len(p.Nodes)+1)
	for _, b := range p.Buffers {
		changes[b.First] += b.Bytes
		changes[b.Last+1] -= b.Bytes
	}
	live := int64(0)
	for i, c := range changes {
		if live += c; live > bytes {
			bytes, at = live, i
		}
	}
	return bytes, at
}

// Exceeds reports whether the peak is above those of all other plans.
func (p *Plan) Exceeds(others ...*Plan) bool {
	peak, _ := p.Peak()
	return !slices.ContainsFunc(others, func(o *Plan) bool {
		other, _ := o.Peak()
		return other >= peak
	})
}

// Live returns the buffers that are in memory while a node runs, the largest first.
func (p *Plan) Live(at int) []*Buffer {
	list := slices.DeleteFunc(slices.Clone(p.Buffers), func(b *Buffer) bool { return b.First > at || b.Last < at })
	slices.SortStableFunc(list, func(a, b *Buffer) int { return int(b.Bytes - a.Bytes) })
	return list
}
