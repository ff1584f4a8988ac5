package steady

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// sameWithAll are the operators whose results have the same bits with any number of threads: each element is computed
// alone, or each row by one thread, or nothing is computed. A test compares those that compute.
var sameWithAll = wordsOf(
	`Abs Add And Cast Ceil Clip Concat Constant ConstantOfShape Cos Div Equal Exp Expand Flatten Floor Gather
	Greater GreaterOrEqual Identity LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Max Min Mod Mul Neg Not Or Pad Pow Range
	Reciprocal Relu Reshape Shape Sigmoid Sign Sin Slice Softmax Split Sqrt Squeeze Sub Tanh Tile Transpose Unsqueeze Where`)

// isProduct and isSum are the operators that [Rewrite] knows to compute with the same bits.
var (
	isProduct = wordsOf("Gemm MatMul com.microsoft.FusedMatMul")
	isSum     = wordsOf("ReduceSum ReduceMean")
)

func wordsOf(text string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(text) {
		set[w] = true
	}
	return set
}

// unproven returns the first node of a graph of which is not known that it has the same bits with 1 to [Threads]
// threads after its products and sums are rewritten; empty if there is none. known counts the buckets in which a node
// was judged.
func unproven(m *onnxpb.ModelProto, known map[*onnxpb.NodeProto]int, buckets int) string {
	for _, p := range m.Graph.Node {
		op := (&shapes.Node{Proto: p}).Op()
		switch {
		case sameWithAll[op]:
		case isProduct[op] || isSum[op]:
			if buckets > 0 && known[p] == buckets {
				continue
			}
			if isSum[op] && sumsAll(p) {
				continue
			}
			return fmt.Sprintf("%s of unknown shape (%s)", op, first(p.Output))
		case op == "ReduceSumSquare" && sumsAll(p): // one result, which one thread computes
		default:
			return fmt.Sprintf("%s (%s)", op, first(p.Output))
		}
	}
	return ""
}

// sumsAll reports whether a sum has one result.
func sumsAll(p *onnxpb.NodeProto) bool {
	for _, a := range p.Attribute {
		if a.GetName() == "axes" {
			return false
		}
	}
	return len(p.Input) < 2
}

func first(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return names[0]
}
