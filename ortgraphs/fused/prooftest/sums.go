package prooftest

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/fused"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// Sums is a graph whose nodes wait for sums of columns: of rows that blocks add up in one step, and of more in two.
type Sums struct {
	Compiler fused.Compiler
	Session  ort.SessionConfig // as in Deep
}

// Check proves the kernels that complete the sums of columns of their blocks, and returns their number and the faults.
func (c Sums) Check(t *testing.T) (proved int, faults []error) {
	t.Helper()
	return proveModel(t, newSums(), c.Compiler, c.Session, 6, "sum")
}

// The second sums are those of a region that reduces rows, too: it has 50 blocks, in groups of 8.
func newSums() *onnxpb.ModelProto {
	n := &network{nil, &onnxpb.GraphProto{Name: proto.String("sums")}, onnxpb.TensorProto_FLOAT}
	n.graph.Input = []*onnxpb.ValueInfoProto{n.value("x", 130, 128), n.value("y", 50, 1028)}
	x := n.add("Sigmoid", "x")
	y := n.add("Exp", "y")
	y = n.add("Div", y, n.sum(y, 1))
	for _, out := range []string{
		n.add("Mul", x, n.add("Add", n.sum(x, 0), n.sum(n.add("Mul", x, "x"), 0))), n.add("Mul", y, n.sum(y, 0)),
	} {
		n.graph.Output = append(n.graph.Output, n.value(out, 130, 128))
	}
	n.graph.Output[1].Type = n.value("", 50, 1028).Type
	return n.model()
}
