package ortgraphs

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// seedInput is the name of the input for random numbers.
const seedInput = "seed"

// gradPrefix precedes a parameter's name in the name of its gradient.
const gradPrefix = "grad."

// elemTypes maps ONNX element types to manifest types. Other types do not occur in a contract.
var elemTypes = map[int32]manifest.DType{
	int32(onnxpb.TensorProto_FLOAT):    manifest.F32,
	int32(onnxpb.TensorProto_DOUBLE):   manifest.F64,
	int32(onnxpb.TensorProto_FLOAT16):  manifest.F16,
	int32(onnxpb.TensorProto_BFLOAT16): manifest.BF16,
	int32(onnxpb.TensorProto_INT32):    manifest.I32,
	int32(onnxpb.TensorProto_INT64):    manifest.I64,
	int32(onnxpb.TensorProto_UINT8):    manifest.U8,
	int32(onnxpb.TensorProto_BOOL):     manifest.Bool,
}

// elemName returns the name of an ONNX element type, or its number.
func elemName(t int32) string {
	if d, ok := elemTypes[t]; ok {
		return string(d)
	}
	return onnxpb.TensorProto_DataType(t).String()
}

// tensorType is the contract's type of an input or output.
type tensorType struct {
	dtype manifest.DType
	shape manifest.Shape
	orF32 bool // f32 is allowed too
}

// checkContract compares the inputs and outputs of a graph with bundle.json.
func checkContract(m *manifest.Bundle, g manifest.Graph, graph *onnxpb.GraphProto, f *faults) {
	inputs, outputs, needed := contract(m, g)
	unknown := "is not in outputs, nor the gradient of a parameter that is trained, nor state"
	if g.Player != "" {
		unknown = fmt.Sprintf(
			"is not an output of player %s, nor the gradient of a parameter that it trains, nor its state", g.Player)
	}
	switch g.Kind {
	case "eval":
		unknown = "is not in outputs"
	case "probe":
		unknown = "is not in probes"
	}
	c := comparison{faults: f, symbols: map[string]string{}}
	c.inputs(graph, inputs, nil, "is neither in inputs nor a parameter, state or the seed")
	c.values("output", graph.Output, outputs, needed, unknown)
}

// comparison is that of one graph with its contract. symbols maps the graph's own names of dynamic dimensions to
// symbols of the bundle: ONNX Runtime assumes that dimensions of one name are equal when it plans its memory.
type comparison struct {
	*faults
	symbols map[string]string
}

// inputs compares the inputs of a graph with those that it may have. All of needed must be there.
func (c *comparison) inputs(graph *onnxpb.GraphProto, want map[string]tensorType, needed []string, unknown string) {
	given := c.values("input", graph.Input, want, needed, unknown)
	for _, t := range graph.Initializer {
		if given[t.GetName()] {
			c.add(fmt.Sprintf("input %q", t.GetName()), "has a default value: an initializer of the same name")
		}
	}
}

// values compares inputs or outputs with those that a graph may have. It returns their names.
func (c *comparison) values(
	kind string, values []*onnxpb.ValueInfoProto, want map[string]tensorType, needed []string, unknown string,
) map[string]bool {
	seen := map[string]bool{}
	for _, v := range values {
		place := fmt.Sprintf("%s %q", kind, v.GetName())
		w, ok := want[v.GetName()]
		switch {
		case seen[v.GetName()]:
			c.add(place, "occurs twice")
		case !ok:
			c.add(place, "%s", unknown)
		default:
			c.check(place, v.GetType(), w)
		}
		seen[v.GetName()] = true
	}
	for _, name := range needed {
		if !seen[name] {
			c.add(fmt.Sprintf("%s %q", kind, name), "missing")
		}
	}
	return seen
}

// contract returns the inputs that a graph may have, the outputs that it may have, and those that it must have. A
// training graph has the metrics and the state of its player, and the gradients of the parameters that its player
// trains; the probe graph has the probes. In a graph of precision bf16, parameters with compute bf16 are bf16, and
// their gradients may be.
func contract(m *manifest.Bundle, g manifest.Graph) (inputs, outputs map[string]tensorType, needed []string) {
	inputs = map[string]tensorType{seedInput: {dtype: manifest.I64}}
	outputs = map[string]tensorType{}
	for _, t := range m.Inputs {
		inputs[t.Name] = tensorType{dtype: t.DType, shape: t.Shape}
	}
	for _, s := range m.Scalars {
		inputs[s.Name] = tensorType{dtype: manifest.F32, shape: manifest.Shape{}}
	}
	for _, p := range m.Probes {
		if g.Kind == "probe" {
			outputs[manifest.ProbePrefix+p.Name] = tensorType{dtype: p.DType, shape: p.Shape}
			needed = append(needed, manifest.ProbePrefix+p.Name)
		}
	}
	for _, t := range m.Outputs {
		if g.Kind == "probe" || g.Kind == "train" && t.IsMetric() && t.Player != g.Player {
			continue
		}
		outputs[t.Name] = tensorType{dtype: t.DType, shape: t.Shape}
		if g.Kind == "train" || t.Name == "loss" || t.Name == "loss_weight" {
			needed = append(needed, t.Name)
		}
	}
	for _, p := range m.Parameters {
		w := tensorType{dtype: manifest.F32, shape: fixed(p.Shape)}
		if g.Precision == string(manifest.BF16) && p.Compute == manifest.BF16 {
			w.dtype = manifest.BF16
		}
		inputs[p.Name] = w
		if g.Kind == "train" && !p.Frozen && p.Player == g.Player {
			w.orF32 = true
			outputs[gradPrefix+p.Name] = w
			needed = append(needed, gradPrefix+p.Name)
		}
	}
	for _, s := range m.State {
		w := tensorType{dtype: manifest.F32, shape: fixed(s.Shape)}
		inputs[s.Name] = w
		if g.Kind == "train" && s.Player == g.Player {
			outputs[StatePrefix+s.Name] = w
			needed = append(needed, StatePrefix+s.Name)
		}
	}
	return inputs, outputs, needed
}

// fixed returns a shape of numbers only.
func fixed(dims []int) manifest.Shape {
	shape := make(manifest.Shape, len(dims))
	for i, d := range dims {
		shape[i] = manifest.Fixed(d)
	}
	return shape
}

// check compares the declared type of an input or output.
func (c *comparison) check(place string, t *onnxpb.TypeProto, want tensorType) {
	tensor := t.GetTensorType()
	if tensor == nil {
		c.add(place, "is not a tensor")
		return
	}
	if got, ok := elemTypes[tensor.GetElemType()]; !ok || got != want.dtype && !(want.orF32 && got == manifest.F32) {
		c.add(place, "is %s, %s says %s", elemName(tensor.GetElemType()), ManifestFile, want.dtype)
	}
	if tensor.Shape == nil {
		c.add(place, "declares no shape, %s says %s", ManifestFile, want.shape)
		return
	}
	dims := tensor.Shape.Dim
	if len(dims) != len(want.shape) {
		c.add(place, "has shape %s, %s says %s", shapeText(dims), ManifestFile, want.shape)
		return
	}
	for i, d := range dims {
		w := want.shape[i]
		name := d.GetDimParam()
		switch {
		case w.Symbol == "" && d.GetDimValue() != int64(w.Size):
			c.add(place, "has shape %s, %s says %s", shapeText(dims), ManifestFile, want.shape)
			return
		case w.Symbol != "" && name == "":
			c.add(place, "has shape %s: dimension %d must be dynamic, %s says %s", shapeText(dims), i, ManifestFile,
				want.shape)
			return
		case w.Symbol != "" && w.Symbol != manifest.DerivedSymbol:
			if _, ok := c.symbols[name]; !ok {
				c.symbols[name] = w.Symbol
			}
			if other := c.symbols[name]; other != w.Symbol {
				c.add(place, "the graph calls both %s and %s %q", other, w.Symbol, name)
			}
		}
	}
}

// shapeText formats a declared shape as bundle.json would, with ? for a dimension without name and size.
func shapeText(dims []*onnxpb.TensorShapeProto_Dimension) string {
	shape := make(manifest.Shape, len(dims))
	for i, d := range dims {
		switch v := d.Value.(type) {
		case *onnxpb.TensorShapeProto_Dimension_DimParam:
			shape[i] = manifest.Sym(v.DimParam)
		case *onnxpb.TensorShapeProto_Dimension_DimValue:
			shape[i] = manifest.Fixed(int(v.DimValue))
		default:
			shape[i] = manifest.Sym("?")
		}
	}
	return shape.String()
}

// valueText formats an input or output as "name dtype[shape]".
func valueText(v *onnxpb.ValueInfoProto) string {
	t := v.GetType().GetTensorType()
	return fmt.Sprintf("%s %s%s", v.GetName(), elemName(t.GetElemType()), shapeText(t.GetShape().GetDim()))
}
