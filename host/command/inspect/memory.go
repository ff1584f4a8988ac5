package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/lifetime"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Memory is what the tensors between the nodes of a fused graph need, apart from its inputs, such as weights, and its
// outputs, such as gradients.
type Memory struct {
	// PeakBytes are in memory at one time at most, while Node runs. ArenaBytes is the size that ONNX Runtime's arena
	// gets.
	PeakBytes  int64  `json:"peak_bytes"`
	ArenaBytes int64  `json:"arena_bytes"`
	Node       string `json:"node"`
	// Live are the tensors at that time, those of one kind together, the most bytes first.
	Live []Live `json:"live"`
}

// Live are tensors of the same shape and type that the same kind of node computes and that the same kind of node reads
// last.
type Live struct {
	Count int      `json:"count"`
	Bytes int64    `json:"bytes"`
	DType string   `json:"dtype"`
	Shape []int64  `json:"shape"`
	From  string   `json:"from"`
	Last  string   `json:"last"`
	Names []string `json:"names"`
}

// memoryOf plans the memory of a training graph that is fused.
func memoryOf(p *fused.Plan) (*Memory, error) {
	l, err := p.Lifetimes()
	if err != nil {
		return nil, err
	}
	m := &Memory{ArenaBytes: lifetime.Arena(l)}
	var at int
	m.PeakBytes, at = l.Peak()
	m.Node = nameOf(l.Nodes[at])
	kinds := map[string]int{}
	for _, b := range l.Live(at) {
		one := liveOf(l, b, at)
		key := fmt.Sprint(one.DType, one.Shape, one.From, one.Last)
		if _, ok := kinds[key]; !ok {
			kinds[key] = len(m.Live)
			m.Live = append(m.Live, Live{DType: one.DType, Shape: one.Shape, From: one.From, Last: one.Last})
		}
		sum := &m.Live[kinds[key]]
		sum.Count, sum.Bytes, sum.Names = sum.Count+1, sum.Bytes+one.Bytes, append(sum.Names, one.Names...)
	}
	slices.SortStableFunc(m.Live, func(a, b Live) int { return int(b.Bytes - a.Bytes) })
	return m, nil
}

// liveOf describes a buffer by the value that it has while a node runs.
func liveOf(l *lifetime.Plan, b *lifetime.Buffer, at int) Live {
	value := b.Values[0]
	written := map[*shapes.Node]bool{}
	for _, n := range l.Nodes[:at+1] {
		written[n] = true
	}
	for _, v := range b.Values {
		if written[v.From] && !v.From.IsView() {
			value = v
		}
	}
	last := ""
	for _, n := range l.Nodes[at:] {
		if slices.Contains(n.Reads(), value) {
			last = kindOf(n)
		}
	}
	return Live{
		Bytes: b.Bytes, DType: strings.ToLower(value.Type.String()), Shape: value.Shape, From: kindOf(value.From),
		Last: last, Names: []string{value.Name},
	}
}

// kindOf names what a node is.
func kindOf(n *shapes.Node) string {
	switch op := n.Op(); {
	case n.Proto.GetDomain() == shapes.KernelDomain:
		return "region"
	case op == "Gemm" || op == "MatMul" || strings.HasSuffix(op, ".FusedMatMul"):
		return "product"
	default:
		return op
	}
}

func nameOf(n *shapes.Node) string { return kindOf(n) + " " + n.Proto.Output[0] }

// shownLive is the number of kinds of tensors that are printed.
const shownLive = 8

func (t *table) tensorMemory(m *Memory) {
	size := func(bytes int64) string { return units.Mebibytes(float64(bytes)) + " MiB" }
	t.line("", "memory between the nodes: %s at most, in an arena of %s, at %s:", size(m.PeakBytes), size(m.ArenaBytes),
		m.Node)
	rest, count := m.PeakBytes, 0
	for i, l := range m.Live {
		if i >= shownLive {
			count += l.Count
			continue
		}
		rest -= l.Bytes
		read := "not read again"
		if l.Last != "" {
			read = "last read by a " + l.Last
		}
		t.line("", "  %s in %s %s %v of a %s, %s: %s", size(l.Bytes), units.Count(l.Count, "tensor"), l.DType, l.Shape,
			l.From, read, abridged(l.Names))
	}
	if count > 0 {
		t.line("", "  %s in %s that --json lists", size(rest), units.Count(count, "other tensor"))
	}
}

// abridged lists the first and the last name.
func abridged(names []string) string {
	if len(names) <= 2 {
		return strings.Join(names, ", ")
	}
	return names[0] + " to " + names[len(names)-1]
}
