package ortgraphs

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// The format of every graph in a bundle, so that the stock ONNX Runtime runs it.
const (
	maxIRVersion = 10
	opsetVersion = 20
)

// randomOps draw from a generator of the session, so their numbers differ after a resume. Dropout does so if it has its
// training_mode input.
var randomOps = map[string]bool{
	"Bernoulli": true, "Multinomial": true,
	"RandomNormal": true, "RandomNormalLike": true, "RandomUniform": true, "RandomUniformLike": true,
}

// portable walks over a whole model.
type portable struct {
	files     map[string]string
	functions map[[2]string]bool // domain, name
	domains   map[string]bool    // of functions
	*faults
}

// checkPortable finds what stock ONNX Runtime does not support, what is not reproducible, and weights outside the
// bundle's files.
func checkPortable(model *onnxpb.ModelProto, files map[string]string, f *faults) {
	p := &portable{files: files, functions: map[[2]string]bool{}, domains: map[string]bool{}, faults: f}
	for _, fn := range model.Functions {
		p.functions[[2]string{fn.GetDomain(), fn.GetName()}] = true
		p.domains[fn.GetDomain()] = true
	}
	if v := model.GetIrVersion(); v < 1 || v > maxIRVersion {
		p.add("ir_version", "%d, must be %d or lower", v, maxIRVersion)
	}
	p.opsets("opset_import", model.OpsetImport)
	p.graph("", model.Graph)
	for _, fn := range model.Functions {
		place := fmt.Sprintf("function %s.%s", fn.GetDomain(), fn.GetName())
		if isDefault(fn.GetDomain()) {
			p.add(place, "is in the default domain of ONNX")
		}
		p.opsets(place+" opset_import", fn.OpsetImport)
		p.attributes(place, fn.AttributeProto)
		p.nodes(place+" ", fn.Node)
	}
}

// isDefault reports whether a domain is the default domain of ONNX, which has two names.
func isDefault(domain string) bool { return domain == "" || domain == "ai.onnx" }

func (p *portable) opsets(place string, imports []*onnxpb.OperatorSetIdProto) {
	found := false
	for _, o := range imports {
		switch {
		case isDefault(o.GetDomain()):
			found = true
			if o.GetVersion() != opsetVersion {
				p.add(place, "opset %d, must be %d", o.GetVersion(), opsetVersion)
			}
		case !p.domains[o.GetDomain()]:
			p.add(place, "domain %q is neither the default domain of ONNX nor that of a function of the model",
				o.GetDomain())
		}
	}
	if !found {
		p.add(place, "names no opset, must name %d", opsetVersion)
	}
}

// graph checks a graph and its subgraphs. where is empty, or says whose attribute it is.
func (p *portable) graph(where string, g *onnxpb.GraphProto) {
	for _, t := range g.Initializer {
		p.tensor(where+"initializer", t)
	}
	for _, t := range g.SparseInitializer {
		p.sparse(where+"sparse initializer", t)
	}
	p.nodes(where, g.Node)
}

func (p *portable) nodes(where string, nodes []*onnxpb.NodeProto) {
	for i, n := range nodes {
		place := fmt.Sprintf("%snode %d %q (%s)", where, i, n.GetName(), n.GetOpType())
		switch {
		case !isDefault(n.GetDomain()):
			if !p.functions[[2]string{n.GetDomain(), n.GetOpType()}] {
				p.add(place, "the model has no function of that name in domain %q", n.GetDomain())
			}
		case randomOps[n.GetOpType()], n.GetOpType() == "Dropout" && len(n.Input) > 2 && n.Input[2] != "":
			p.add(place, "draws its own random numbers; they must come from the seed input")
		}
		p.attributes(place, n.Attribute)
	}
}

// attributes checks the tensors and graphs in the attributes of a node, or in a function's default attributes.
func (p *portable) attributes(place string, attributes []*onnxpb.AttributeProto) {
	for _, a := range attributes {
		at := fmt.Sprintf("%s attribute %q", place, a.GetName())
		if a.T != nil {
			p.tensor(at, a.T)
		}
		for _, t := range a.Tensors {
			p.tensor(at, t)
		}
		if a.SparseTensor != nil {
			p.sparse(at, a.SparseTensor)
		}
		for _, t := range a.SparseTensors {
			p.sparse(at, t)
		}
		if a.G != nil {
			p.graph(at+" ", a.G)
		}
		for _, g := range a.Graphs {
			p.graph(at+" ", g)
		}
	}
}

func (p *portable) sparse(place string, t *onnxpb.SparseTensorProto) {
	p.tensor(place, t.GetValues())
	p.tensor(place, t.GetIndices())
}

// tensor checks the location of a constant's values, and that their number matches its shape.
func (p *portable) tensor(place string, t *onnxpb.TensorProto) {
	place = fmt.Sprintf("%s %q", place, t.GetName())
	elements, ok := product(t.GetDims())
	if !ok {
		p.add(place, "has the impossible shape %v", t.GetDims()[:min(8, len(t.GetDims()))])
		return
	}
	if t.GetDataLocation() != onnxpb.TensorProto_EXTERNAL {
		size, raw := shapes.ElementSize(shapes.Type(t.GetDataType())), int64(len(t.GetRawData()))
		if raw > 0 && size > 0 && raw/size != elements {
			p.add(place, "has %d bytes for %d values of %d bytes", raw, elements, size)
		}
		return
	}
	keys := map[string]string{}
	for _, e := range t.ExternalData {
		if _, twice := keys[e.GetKey()]; twice {
			p.add(place, "has the key %q twice", e.GetKey()) // readers differ in which one they use
		}
		keys[e.GetKey()] = e.GetValue()
	}
	if _, ok := p.files[keys["location"]]; !ok {
		p.add(place, "has its data in %q, which is not a file of the bundle", keys["location"])
	}
	for _, key := range []string{"offset", "length"} {
		if v, err := strconv.ParseInt(keys[key], 10, 64); keys[key] != "" && (err != nil || v < 0) {
			p.add(place, "has the impossible %s %q", key, keys[key])
		}
	}
}

// product returns the number of values of a shape, or false if no tensor can have it.
func product(dims []int64) (int64, bool) {
	n := uint64(1)
	for _, d := range dims {
		hi, lo := bits.Mul64(n, uint64(d))
		if d < 0 || hi != 0 || lo > math.MaxInt64/16 { // so that its size in bytes can be computed too
			return 0, false
		}
		n = lo
	}
	return int64(n), true
}
