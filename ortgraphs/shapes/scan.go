package shapes

import (
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// scan computes the shapes of one step of a Scan, and from them those of its results. They stay unknown if an input's
// shape is, or if the sequences are not along the first axis.
func (in *inference) scan(n *Node, depth int) error {
	body, carries, ok := recurrence(n)
	if !ok || slices.ContainsFunc(n.In, func(v *Value) bool { return !v.Known() }) {
		return nil
	}
	step := &inference{
		result: &Result{values: map[string]*Value{}}, visited: in.visited, numbers: in.numbers, functions: in.functions,
	}
	values := step.result.values
	for _, c := range n.Captured {
		values[c.Name] = c.Value
	}
	for _, t := range body.Initializer {
		v := constant(t)
		values[v.Name] = v
	}
	var steps int64
	for i, v := range n.In {
		shape := v.Shape
		if i >= carries {
			if len(shape) == 0 || i > carries && shape[0] != steps {
				return &NodeError{n.Place, n.Op(), fmt.Sprintf("sequence %d has the shape %v, the first one %d steps",
					i-carries, shape, steps)}
			}
			steps, shape = shape[0], shape[1:]
		}
		name := body.Input[i].GetName()
		values[name] = &Value{Name: name, Type: v.Type, Shape: shape}
	}
	err := step.run(body.Node, values, nil, n.Place+" > ", depth+1)
	in.visited, in.numbers = step.visited, step.numbers
	if err != nil {
		return err
	}
	n.Step, n.Steps = step.result, steps
	for i, v := range n.Out {
		result := values[body.Output[i].GetName()]
		if v == nil || result == nil || !result.Known() {
			continue
		}
		v.Type, v.Shape = result.Type, slices.Clone(result.Shape)
		if i >= carries {
			v.Shape = append([]int64{steps}, v.Shape...)
		}
	}
	return nil
}

// recurrence returns the body of a Scan and the number of values that a step passes on to the next one.
func recurrence(n *Node) (body *onnxpb.GraphProto, carries int, ok bool) {
	a, sequences := n.Attribute("body"), n.Integer("num_scan_inputs", 0)
	if a.GetG() == nil || sequences < 1 || sequences > int64(len(n.In)) {
		return nil, 0, false
	}
	for _, name := range []string{"scan_input_axes", "scan_output_axes"} {
		axes := n.Attribute(name)
		if axes != nil && slices.ContainsFunc(axes.Ints, func(x int64) bool { return x != 0 }) {
			return nil, 0, false
		}
	}
	body, carries = a.G, len(n.In)-int(sequences)
	return body, carries, len(body.Input) == len(n.In) && len(body.Output) == len(n.Out) && len(n.Out) >= carries
}
