package shapes

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/prune"
)

// Sizes gives a value to each symbol of the graph's inputs.
type Sizes map[string]int

// Result is a graph with its shapes for one set of sizes.
type Result struct {
	Model *onnxpb.ModelProto
	// Nodes are in the order in which they run. They do not include bodies of If and Loop; that of a Scan is Node.Step.
	Nodes  []*Node
	Inputs []*Value
	// Outputs are the graph's outputs. An entry is nil if nothing computes the value that the graph names.
	Outputs []*Value
	// Constants are the initializers.
	Constants []*Value

	values map[string]*Value
}

// Value returns the value of the graph with that name, or nil.
func (r *Result) Value(name string) *Value { return r.values[name] }

// NodeError says which node cannot run, and why.
type NodeError struct {
	Place, Op, Reason string
}

func (e *NodeError) Error() string { return fmt.Sprintf("%s (%s): %s", e.Place, e.Op, e.Reason) }

// Limits for hostile files.
const (
	maxNodes   = 1 << 17
	maxDepth   = 32      // nesting of function calls
	maxRank    = 32      // dimensions; ONNX Runtime's kernels have fewer
	maxNumbers = 1 << 22 // of all Value.Data
)

var errTooLarge = fmt.Errorf("more than %d nodes, or functions more than %d deep", maxNodes, maxDepth)

// Infer computes the shapes of a model's graph. If Sizes does not have a symbol of an input, the shape of that input is
// unknown. Infer fails with a *NodeError if operands do not match, and with another error for an invalid graph.
func Infer(model *onnxpb.ModelProto, sizes Sizes) (*Result, error) {
	if model.GetGraph() == nil {
		return nil, errors.New("the model has no graph")
	}
	in := &inference{
		result: &Result{Model: model, values: map[string]*Value{}}, functions: map[[2]string]*onnxpb.FunctionProto{},
		declared: map[string]*onnxpb.ValueInfoProto{},
	}
	for _, f := range model.Functions {
		in.functions[[2]string{f.GetDomain(), f.GetName()}] = f
	}
	r, g := in.result, model.Graph
	for _, v := range slices.Concat(g.ValueInfo, g.Output) {
		in.declared[v.GetName()] = v
	}
	for _, v := range g.Input {
		value := input(v, sizes)
		r.Inputs = append(r.Inputs, value)
		r.values[value.Name] = value
	}
	for _, t := range g.Initializer {
		value := constant(t)
		r.Constants = append(r.Constants, value)
		r.values[value.Name] = value
	}
	if err := in.run(g.Node, r.values, nil, "", 0); err != nil {
		return nil, err
	}
	for _, v := range g.Output {
		r.Outputs = append(r.Outputs, r.values[v.GetName()])
	}
	return r, nil
}

func input(v *onnxpb.ValueInfoProto, sizes Sizes) *Value {
	t := v.GetType().GetTensorType()
	value := &Value{Name: v.GetName(), Type: Type(t.GetElemType())}
	if t.GetShape() == nil {
		return value
	}
	shape := make([]int64, len(t.Shape.Dim))
	for i, d := range t.Shape.Dim {
		shape[i] = d.GetDimValue()
		if s := d.GetDimParam(); s != "" {
			shape[i] = int64(sizes[s])
		}
		if shape[i] <= 0 || shape[i] > 1<<31 {
			return value
		}
	}
	value.Shape = shape
	return value
}

type inference struct {
	result    *Result
	visited   int // nodes and calls so far
	numbers   int // in Value.Data so far
	functions map[[2]string]*onnxpb.FunctionProto
	declared  map[string]*onnxpb.ValueInfoProto // values that the graph declares
}

// KernelDomain is the domain of the nodes that run the kernels of fused graphs. Their results are what the graph
// declares.
const KernelDomain = "xtts.host"

// declare gives the outputs of a kernel their declared types and shapes.
func (in *inference) declare(n *Node) {
	for _, v := range n.Out {
		if v == nil {
			continue
		}
		if info := in.declared[v.Name]; info != nil {
			as := input(info, nil)
			v.Type, v.Shape = as.Type, as.Shape
		}
	}
}

// run processes nodes in the scope of their values. attributes are those of the call if the nodes belong to a function.
func (in *inference) run(
	nodes []*onnxpb.NodeProto, scope map[string]*Value, attributes []*onnxpb.AttributeProto, where string, depth int,
) error {
	if depth > maxDepth {
		return errTooLarge
	}
	for _, p := range nodes {
		if in.visited++; in.visited > maxNodes { // includes calls: a function without nodes may be called very often
			return errTooLarge
		}
		n := &Node{Proto: resolve(p, attributes), Place: where + place(p)}
		for _, name := range p.Input {
			v := scope[name]
			if v == nil && name != "" {
				v = &Value{Name: name} // of an outer graph, or an error that ONNX Runtime will report
			}
			n.In = append(n.In, v)
		}
		for _, name := range slices.Sorted(maps.Keys(prune.Captured(p))) {
			if v := scope[name]; v != nil {
				n.Captured = append(n.Captured, Captured{name, v})
			}
		}
		if f := in.functions[[2]string{p.GetDomain(), p.GetOpType()}]; f != nil {
			if err := in.call(n, f, scope, depth); err != nil {
				return err
			}
			continue
		}
		for _, name := range p.Output {
			if name == "" {
				n.Out = append(n.Out, nil)
				continue
			}
			v := &Value{Name: name, From: n}
			n.Out = append(n.Out, v)
			scope[name] = v
		}
		in.result.Nodes = append(in.result.Nodes, n)
		if err := infer(n); err != nil {
			return &NodeError{n.Place, n.Op(), err.Error()}
		}
		if p.GetDomain() == KernelDomain {
			in.declare(n)
		}
		if n.Op() == "Scan" {
			if err := in.scan(n, depth); err != nil {
				return err
			}
		}
		for _, v := range n.Out {
			if v == nil {
				continue
			}
			if len(v.Shape) > maxRank || slices.ContainsFunc(v.Shape, func(d int64) bool { return d < 0 }) {
				return &NodeError{n.Place, n.Op(), fmt.Sprintf("an output of the shape %.200v", fmt.Sprint(v.Shape))}
			}
			if in.numbers += len(v.Data); in.numbers > maxNumbers {
				v.Data = nil
			}
		}
	}
	return nil
}

// call replaces a call by the function's body.
func (in *inference) call(n *Node, f *onnxpb.FunctionProto, scope map[string]*Value, depth int) error {
	inner := map[string]*Value{}
	for i, name := range f.Input {
		if i < len(n.In) && n.In[i] != nil {
			inner[name] = n.In[i]
		}
	}
	if err := in.run(f.Node, inner, n.Proto.Attribute, n.Place+" > ", depth+1); err != nil {
		return err
	}
	for i, name := range n.Proto.Output {
		if name != "" && i < len(f.Output) && inner[f.Output[i]] != nil {
			scope[name] = inner[f.Output[i]]
		}
	}
	return nil
}

// resolve replaces a function's references to attributes of its call.
func resolve(p *onnxpb.NodeProto, call []*onnxpb.AttributeProto) *onnxpb.NodeProto {
	if !slices.ContainsFunc(p.Attribute, func(a *onnxpb.AttributeProto) bool { return a.GetRefAttrName() != "" }) {
		return p
	}
	out := &onnxpb.NodeProto{Name: p.Name, OpType: p.OpType, Domain: p.Domain, Input: p.Input, Output: p.Output}
	for _, a := range p.Attribute {
		if ref := a.GetRefAttrName(); ref != "" {
			i := slices.IndexFunc(call, func(c *onnxpb.AttributeProto) bool { return c.GetName() == ref })
			if i < 0 {
				continue
			}
			c := call[i]
			a = &onnxpb.AttributeProto{
				Name: a.Name, Type: c.Type, F: c.F, I: c.I, S: c.S, T: c.T, Floats: c.Floats, Ints: c.Ints,
				Strings: c.Strings,
			}
		}
		out.Attribute = append(out.Attribute, a)
	}
	return out
}

func place(p *onnxpb.NodeProto) string {
	if p.GetName() != "" {
		return "node " + p.GetName()
	}
	for _, name := range p.Output {
		if name != "" {
			return "the node of " + name
		}
	}
	return "a node without outputs"
}

// Op is the operator, as "domain.name" outside the default domain.
func (n *Node) Op() string {
	if d := n.Proto.GetDomain(); d != "" && d != "ai.onnx" {
		return d + "." + n.Proto.GetOpType()
	}
	return n.Proto.GetOpType()
}

// Attribute returns an attribute of the node, or nil.
func (n *Node) Attribute(name string) *onnxpb.AttributeProto {
	for _, a := range n.Proto.Attribute {
		if a.GetName() == name {
			return a
		}
	}
	return nil
}

// Integer returns an attribute, or another number if the node does not have it.
func (n *Node) Integer(name string, otherwise int64) int64 {
	if a := n.Attribute(name); a != nil {
		return a.GetI()
	}
	return otherwise
}

// Input returns the i-th input, or nil if it is omitted.
func (n *Node) Input(i int) *Value {
	if i < len(n.In) {
		return n.In[i]
	}
	return nil
}
