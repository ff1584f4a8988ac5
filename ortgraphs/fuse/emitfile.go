package fuse

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// minOpset is the oldest version of ONNX's operators in which all nodes that Model writes have their present form.
const minOpset = 18

// modelFile is an ONNX model in the making. It keeps the first error.
type modelFile struct {
	graph   *onnxpb.GraphProto
	imports []*onnxpb.OperatorSetIdProto
	// names are those that are taken.
	names map[string]bool
	// initializers are the names of those that numbers has made, by content.
	initializers map[string]string
	err          error
}

func newModelFile(from *onnxpb.ModelProto) *modelFile {
	f := &modelFile{
		graph: &onnxpb.GraphProto{Name: proto.String(from.Graph.GetName())}, names: map[string]bool{"": true},
		initializers: map[string]string{},
	}
	f.opsets(from)
	return f
}

// opsets imports what the model and its functions do, because the nodes of functions become nodes of the graph.
func (f *modelFile) opsets(m *onnxpb.ModelProto) {
	lists := [][]*onnxpb.OperatorSetIdProto{m.OpsetImport}
	for _, function := range m.Functions {
		lists = append(lists, function.OpsetImport)
	}
	for _, o := range slices.Concat(lists...) {
		f.require(o.GetDomain(), o.GetVersion())
	}
	if !slices.ContainsFunc(f.imports, func(o *onnxpb.OperatorSetIdProto) bool {
		return o.GetDomain() == "" && o.GetVersion() >= minOpset
	}) {
		f.fail("the model's opset is older than %d", minOpset)
	}
}

// require imports a domain.
func (f *modelFile) require(domain string, version int64) {
	if domain == "ai.onnx" {
		domain = ""
	}
	i := slices.IndexFunc(f.imports, func(o *onnxpb.OperatorSetIdProto) bool { return o.GetDomain() == domain })
	if i < 0 {
		f.imports = append(f.imports,
			&onnxpb.OperatorSetIdProto{Domain: proto.String(domain), Version: proto.Int64(version)})
	} else if other := f.imports[i].GetVersion(); other != version {
		f.fail("versions %d and %d of the domain %q", other, version, domain)
	}
}

func (f *modelFile) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// unique returns a name that no tensor has: the given one, or that with a number.
func (f *modelFile) unique(name string) string {
	for i, base := 2, name; f.names[name]; i++ {
		name = fmt.Sprintf("%s~%d", base, i)
	}
	f.names[name] = true
	return name
}

// node adds a node.
func (f *modelFile) node(op string, in, out []string, attributes ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	n := &onnxpb.NodeProto{
		Name: proto.String(out[0]), OpType: proto.String(op), Input: in, Output: out, Attribute: attributes,
	}
	f.graph.Node = append(f.graph.Node, n)
	return n
}

// shape returns the name of a constant list of integers.
func (f *modelFile) shape(list []int) string {
	data := make([]float64, len(list))
	for i, x := range list {
		data[i] = float64(x)
	}
	return f.numbers(data, onnxpb.TensorProto_INT64, []int{len(list)})
}

// numbers returns the name of an initializer with the given content, which it adds if there is none.
func (f *modelFile) numbers(data []float64, t shapes.Type, shape []int) string {
	raw, err := encode(data, t)
	if err != nil {
		f.fail("%w", err)
	}
	content := fmt.Sprint(t, shape, " ") + string(raw)
	name, ok := f.initializers[content]
	if !ok {
		name = f.unique("constant")
		f.initializers[content] = name
		p := &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(t)), RawData: raw}
		for _, d := range shape {
			p.Dims = append(p.Dims, int64(d))
		}
		f.graph.Initializer = append(f.graph.Initializer, p)
	}
	return name
}
