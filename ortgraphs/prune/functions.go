package prune

import "github.com/xtts-host/xtts-host/ortgraphs/onnxpb"

// id names an operator or a function.
type id struct{ domain, name, overload string }

// domain gives the two names of ONNX's own domain one form.
func domain(name string) string {
	if name == "ai.onnx" {
		return ""
	}
	return name
}

func idOf(f *onnxpb.FunctionProto) id {
	return id{domain(f.GetDomain()), f.GetName(), f.GetOverload()}
}

// calls is what nodes call, directly or through functions.
type calls struct {
	functions map[id]bool
	domains   map[string]bool
}

func called(nodes []*onnxpb.NodeProto, functions []*onnxpb.FunctionProto) calls {
	bodies := map[id][]*onnxpb.NodeProto{}
	for _, f := range functions {
		bodies[idOf(f)] = f.Node
	}
	c := calls{map[id]bool{}, map[string]bool{"": true}}
	c.walk(nodes, bodies)
	return c
}

func (c *calls) walk(nodes []*onnxpb.NodeProto, bodies map[id][]*onnxpb.NodeProto) {
	for _, n := range nodes {
		callee := id{domain(n.GetDomain()), n.GetOpType(), n.GetOverload()}
		c.domains[callee.domain] = true
		if body, ok := bodies[callee]; ok && !c.functions[callee] {
			c.functions[callee] = true
			c.walk(body, bodies)
		}
		for g := range inner(n) {
			c.walk(g.Node, bodies)
		}
	}
}
