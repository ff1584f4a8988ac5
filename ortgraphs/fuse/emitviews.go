package fuse

import (
	"fmt"
	"math"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

type viewKey struct{ source, view string }

// operand returns the name of a tensor that has the elements of an operand in their order.
func (e *emitter) operand(o Operand) string {
	p, views := e.seen(o)
	return e.through(p.name, views)
}

// seen returns where an operand's tensor is, and the views from there.
func (e *emitter) seen(o Operand) (placed, []View) {
	p, views := e.find(o.Tensor), o.Views
	if len(views) == 0 || views[0].Op != Reshape {
		views = append([]View{{Op: Reshape, To: o.Tensor.Shape}}, views...)
	}
	if slices.Equal(views[0].To, p.shape) {
		views = views[1:]
	}
	return p, views
}

// through writes a node for each view of a tensor, once.
func (e *emitter) through(source string, views []View) string {
	for _, v := range views {
		key := viewKey{source, fmt.Sprint(v.Op, v.To, v.Perm, v.Axis, v.Start, v.Step)}
		name, ok := e.views[key]
		if !ok {
			name = e.unique(source + "~" +
				[...]string{Reshape: "reshape", Transpose: "transpose", Expand: "expand", Slice: "slice"}[v.Op])
			e.view(source, v, name)
			e.views[key] = name
		}
		source = name
	}
	return source
}

// view writes the node of a view.
func (e *emitter) view(source string, v View, out string) {
	outs := []string{out}
	switch v.Op {
	case Reshape:
		e.node("Reshape", []string{source, e.shape(v.To)}, outs, reshapeAttributes(v.To)...)
	case Transpose:
		e.node("Transpose", []string{source}, outs, integers("perm", v.Perm))
	case Expand:
		e.node("Expand", []string{source, e.shape(v.To)}, outs)
	case Slice:
		end := v.Start + v.Step*v.To[v.Axis]
		if end < 0 {
			end = math.MinInt64 // -1 would be the last element
		}
		e.node("Slice", []string{
			source, e.shape([]int{v.Start}), e.shape([]int{end}), e.shape([]int{v.Axis}), e.shape([]int{v.Step}),
		}, outs)
	}
}

// copy writes an operand to a tensor of its own.
func (e *emitter) copy(o Operand, out string) {
	p, views := e.seen(o)
	if len(views) == 0 {
		e.node("Identity", []string{p.name}, []string{out})
		return
	}
	last := len(views) - 1
	e.view(e.through(p.name, views[:last]), views[last], out)
}

// reshapeAttributes makes a 0 in a shape mean a dimension without elements.
func reshapeAttributes(shape []int) []*onnxpb.AttributeProto {
	if slices.Contains(shape, 0) {
		return []*onnxpb.AttributeProto{integerAttribute("allowzero", 1)}
	}
	return nil
}
