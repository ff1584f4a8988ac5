package fuse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// Ledger counts what one run of a graph reads and writes on a GPU: as exported, and with one kernel for each region.
type Ledger struct {
	// Products are the matrix products and convolutions. They are the same in both cases, except for transposed
	// operands.
	Products Traffic `json:"products"`
	// Exported is everything else, one kernel for each node that moves data.
	Exported Traffic `json:"exported"`
	// Fused is the same in regions. It includes Left. Attention is a region, with its products.
	Fused Traffic `json:"fused"`
	// Batched are the products that run in launches of many, and the number of these launches. Products has them, too.
	Batched Batched `json:"batched"`
	// Planned is the number of products for which the library chooses an algorithm, Biased that of those which add a
	// bias, and Residuals that of those which add a matrix. Products has them, too.
	Planned   int `json:"planned"`
	Biased    int `json:"biased"`
	Residuals int `json:"residuals"`
	// Convolutions is the number of convolutions, and of their gradients, that a library computes without windows in
	// memory. Products has them, too.
	Convolutions int `json:"convolutions"`
	// Regions are those of Fused, equal ones together, the most bytes first.
	Regions []RegionKind `json:"regions"`
	// Left are the nodes that no region may contain, by operator.
	Left []Left `json:"left"`
}

// Traffic is a number of kernels, and the bytes that they read and write in memory.
type Traffic struct {
	Kernels int `json:"kernels"`
	Bytes   int `json:"bytes"`
}

// Batched is a number of products in a number of launches.
type Batched struct {
	Products int `json:"products"`
	Launches int `json:"launches"`
}

func (t *Traffic) add(kernels, bytes int) {
	t.Kernels += kernels
	t.Bytes += bytes
}

func (t *Traffic) repeat(times int, one Traffic) { t.add(times*one.Kernels, times*one.Bytes) }

// RegionKind describes regions that compute the same over the same shape.
type RegionKind struct {
	Count int `json:"count"`
	// Ops counts the operations, as "Mul 3, Sub, sum". Domain is the shape over which they run.
	Ops    string `json:"ops"`
	Domain []int  `json:"domain"`
	// Inputs and Outputs are numbers of tensors in memory. ColumnSums are sums over the outer axes for which no
	// node waits: another kernel completes them. The kernel that has the others completes them itself, unless their
	// partial sums are many, which is not told apart here.
	Inputs     int `json:"inputs"`
	Outputs    int `json:"outputs"`
	ColumnSums int `json:"column_sums"`
	// Bytes sums all regions of this kind.
	Bytes int `json:"bytes"`
	// Kernels are the names of their functions. Plain says why regions have none.
	Kernels []string `json:"kernels"`
	Plain   []string `json:"plain"`
}

// Left are nodes of one operator that run as exported.
type Left struct {
	Op    string `json:"op"`
	Count int    `json:"count"`
	// Kernels and Bytes are those of all steps of a recurrence, without its products.
	Kernels int    `json:"kernels"`
	Bytes   int    `json:"bytes"`
	Reason  string `json:"reason"`
}

// NewLedger partitions the graph of a model for one set of sizes. kernels returns the names of the functions that
// compute a region, or why there are none.
func NewLedger(
	model *onnxpb.ModelProto, sizes shapes.Sizes, kernels func(r *Region) ([]string, error),
) (*Ledger, error) {
	r, err := shapes.Infer(model, sizes)
	if err != nil {
		return nil, err
	}
	l := &Ledger{}
	read := readers{}
	l.Products, l.Exported = read.count(r, needed(r))
	g, err := Lower(r)
	if err != nil {
		return nil, err
	}
	g.Unsupported = func(r *Region) error {
		_, err := kernels(r)
		return err
	}
	l.regions(Partition(g), kernels)
	left := map[string]*Left{}
	for _, n := range g.Nodes {
		if n.Kind != Opaque || n.work != nil || isProduct(n.Op) {
			continue
		}
		if left[n.Op] == nil {
			left[n.Op] = &Left{Op: n.Op, Reason: reason(n.Op)}
		}
		_, t := read.count(r, []*shapes.Node{n.Model})
		left[n.Op].Count++
		left[n.Op].Kernels += t.Kernels
		left[n.Op].Bytes += t.Bytes
		l.Fused.add(t.Kernels, t.Bytes)
	}
	for _, op := range slices.Sorted(maps.Keys(left)) {
		l.Left = append(l.Left, *left[op])
	}
	return l, nil
}

// traffic returns the bytes that a node of the model reads and writes. A look-up and a slice read of their first input
// no more than they write.
func traffic(n *shapes.Node) int {
	read, written := 0, 0
	for _, v := range n.Out {
		if v != nil {
			written += int(v.Bytes())
		}
	}
	for i, v := range n.In {
		switch {
		case v == nil:
		case i == 0 && (reason(n.Op()) == lookUp || n.Op() == "Slice"):
			read += min(int(v.Bytes()), written)
		default:
			read += int(v.Bytes())
		}
	}
	return read + written
}

// Moved returns the bytes that a node of a model reads and writes.
func Moved(n *shapes.Node) int { return traffic(n) }

// Left says why an opaque node runs as the model has it.
func (n *Node) Left() string { return reason(n.Op) }

const lookUp = "a look-up: its places depend on data"

// reason says why nodes of an operator are left.
func reason(op string) string {
	switch op {
	case "Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND", "OneHot":
		return lookUp
	case "CumSum", "TopK", "ArgMax", "ArgMin", "NonZero":
		return "its elements depend on one another"
	case "Scan":
		return "a recurrence: its steps run one after another"
	}
	return "no rule knows it in this form"
}

func isProduct(op string) bool {
	switch op {
	case "MatMul", "Gemm", "Conv", "ConvTranspose":
		return true
	}
	return false
}

// readers has the nodes that read each value of a graph. Each graph is searched once.
type readers map[*shapes.Result]map[*shapes.Value][]*shapes.Node

func (all readers) in(r *shapes.Result) map[*shapes.Value][]*shapes.Node {
	if all[r] == nil {
		all[r] = map[*shapes.Value][]*shapes.Node{}
		for _, n := range r.Nodes {
			for _, v := range n.Reads() {
				all[r][v] = append(all[r][v], n)
			}
		}
	}
	return all[r]
}

// count counts nodes of the model, the matrix products aside. Of a recurrence it counts the nodes of all steps. ONNX
// Runtime folds a transpose of the last two dimensions into the products that read it.
func (all readers) count(r *shapes.Result, nodes []*shapes.Node) (products, others Traffic) {
	reads := all.in(r)
	for _, n := range nodes {
		bytes := traffic(n)
		switch op := n.Op(); {
		case isProduct(op):
			products.add(1, bytes)
		case n.IsView():
		case op == "Transpose" && swapsLast(n) && !slices.Contains(r.Outputs, n.Out[0]) &&
			!slices.ContainsFunc(reads[n.Out[0]], func(m *shapes.Node) bool { return m.Op() != "MatMul" }):
		case n.Step != nil:
			p, o := all.count(n.Step, n.Step.Nodes)
			products.repeat(int(n.Steps), p)
			others.repeat(int(n.Steps), o)
		default:
			others.add(1, bytes)
		}
	}
	return products, others
}

func swapsLast(n *shapes.Node) bool {
	perm, given, _ := numbers(n, len(n.In), "perm")
	rank := len(perm)
	return !given && len(n.Out[0].Shape) == 2 ||
		rank >= 2 && slices.IsSorted(perm[:rank-2]) && perm[rank-1] == rank-2 && perm[rank-2] == rank-1
}

func (l *Ledger) regions(regions []*Region, names func(r *Region) ([]string, error)) {
	kinds := map[string]*RegionKind{}
	for _, r := range regions {
		kernels, bytes := r.Work.count(l, r), r.Read+r.Written
		if kernels == 0 {
			continue
		}
		sums := r.ColumnSums
		if r.Awaited {
			sums = 0
		}
		if sums > 0 {
			kernels++ // that adds what the blocks of the others have summed
		}
		l.Fused.add(kernels, bytes)
		k := RegionKind{
			Ops: r.Ops(), Domain: r.Domain, Inputs: len(r.In), Outputs: len(r.Out), ColumnSums: sums,
			Kernels: []string{}, Plain: []string{},
		}
		key := fmt.Sprint(k)
		if kinds[key] == nil {
			kinds[key] = &k
		}
		kinds[key].add(r, bytes, names)
	}
	for _, key := range slices.Sorted(maps.Keys(kinds)) {
		l.Regions = append(l.Regions, *kinds[key])
	}
	slices.SortStableFunc(l.Regions, func(a, b RegionKind) int { return cmp.Compare(b.Bytes, a.Bytes) })
}

// add counts a region of the kind.
func (k *RegionKind) add(r *Region, bytes int, kernels func(r *Region) ([]string, error)) {
	k.Count++
	k.Bytes += bytes
	names, err := kernels(r)
	if err != nil {
		k.Plain = appendNew(k.Plain, err.Error())
	}
	k.Kernels = appendNew(k.Kernels, names...)
}

// appendNew appends those that the list does not have.
func appendNew(list []string, more ...string) []string {
	for _, x := range more {
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	}
	return list
}

// Ops describes the operations of a region.
func (r *Region) Ops() string { return r.Work.ops(r) }
