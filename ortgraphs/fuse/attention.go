package fuse

import (
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// Attention says that a region is softmax(S) V, where S is an elementwise function of a product Q K', or the gradient
// of it. Its kernel keeps no matrix of scores in memory. The backward region computes the scores again, from the
// largest score and the sum of powers of each row, which the forward region leaves.
type Attention struct {
	// Query, Key and Value have a row for each position. Gradient is that of the result, nil in the forward region.
	Query, Key, Value, Gradient *Matrix
	// Product is Q K', with the shape of all places: the last two dimensions are queries and keys. Scores is the
	// operand of the softmax, Softmax its result, and Weights what is multiplied with the values.
	Product, Scores, Softmax, Weights *Tensor
	// Most and Total are the largest score of each row and the sum of its powers.
	Most, Total *Tensor
	// Reach says for each row which keys it attends to. Bit k is for the ReachWidth keys from k * ReachWidth on. It is
	// set if the softmax of one of them is at least 2^-126, so that a backward pass that visits only these keys loses
	// nothing; other bits may be set, too. It is nil if there is no backward region.
	Reach *Tensor
	// Results are those of the forward region, or the gradients of Query, Key and Value.
	Results []Result
	// Backward is nil in the forward region.
	Backward *AttentionGradient
}

// AttentionGradient is what a backward region computes at each place and for each row.
type AttentionGradient struct {
	// Product is dO V', the gradient of the weights. Summed is added up along each row: Sum. Queries and Keys are the
	// gradients of the scores that the products for dQ and dK read.
	Product, Summed, Sum, Queries, Keys *Tensor
	// ColumnSums are those of the results: at most one of each tensor.
	ColumnSums []ColumnSum
	// Result is the forward region's, if the sums of dO * Result along each row are those of Summed.
	Result *Result
}

// Matrix is an operand of a product: with a row for each position, or a column if Turned.
type Matrix struct {
	Operand
	Turned bool
}

// Result is a product of a region, times Scale: with a row for each position, or a column if Turned. Out, which is in
// memory, shows it through views: as the part of dimension Axis that begins at Start, if Out joins several results.
type Result struct {
	Product, Out *Tensor
	Scale        float64
	Views        []View
	Axis, Start  int
	Turned       bool
}

// Shape is that of the part of Out.
func (r Result) Shape() []int { return Operand{r.Product, r.Views}.Shape() }

// Reach is the operation of the reduction that computes [Attention.Reach].
const Reach = "reach"

// OfKernels reports whether no plain node computes a tensor.
func (t *Tensor) OfKernels() bool { return t.From != nil && t.From.Op == Reach }

// ReachWidth is the number of keys of a bit of [Attention.Reach]: a multiple of 64, for at most 32 bits.
func ReachWidth(keys int) int { return 64 * max(1, (keys+64*32-1)/(64*32)) }

func (a *Attention) RoundsAsNodes() bool { return false }

// group adds the node of Reach, which no node reads.
func (a *Attention) group(nodes []*Node) [][]*Node {
	if a.Backward == nil && a.Reach != nil {
		nodes = append(nodes, a.Reach.From)
	}
	return [][]*Node{nodes}
}

func (a *Attention) complete(r *Region) {
	r.Domain = a.Product.Shape
	if a.Backward == nil {
		if a.Reach != nil {
			r.Out = append(r.Out, a.Reach)
		}
		return
	}
	r.ColumnSums = len(a.Backward.ColumnSums)
	r.reads(a.Reach)
	if a.Backward.Result != nil {
		r.reads(a.Backward.Result.Out)
	}
}

// reads adds a tensor that no node reads.
func (r *Region) reads(t *Tensor) {
	r.In = append(r.In, t)
	r.Read += t.Bytes()
}

func (a *Attention) ops(*Region) string {
	if a.Backward == nil {
		return "attention"
	}
	return "gradient of attention"
}

// count has one kernel for the gradient of the queries, and one for those of keys and values.
func (a *Attention) count(*Ledger, *Region) (kernels int) {
	if a.Backward == nil {
		return 1
	}
	return 2
}

// findAttention finds attention in a graph and gives each its own copies of the nodes that it computes.
func findAttention(g *Graph) {
	uses, outputs, found := g.uses(), g.outputs(), false
	for _, n := range slices.Clone(g.Nodes) {
		s, ok := softmaxOf(n, uses)
		if !ok {
			continue
		}
		f := &finding{
			softmax: s, element: onnxpb.TensorProto_BFLOAT16, uses: uses, outputs: outputs,
			depends: map[*Tensor]source{},
		}
		if !f.find() {
			continue
		}
		f.separate(g)
		found, uses = true, g.uses()
	}
	if found {
		g.Nodes = reachable(g)
	}
}
