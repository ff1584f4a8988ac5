package nantrace

import (
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
	"github.com/xtts-host/xtts-host/ortgraphs/shapes"
)

// given are operators that write an infinity which the user has given, as masks have it.
var given = []string{"Where", "Constant", "ConstantOfShape", "Expand", "Pad", "ScatterND"}

// start is where something that is not finite begins.
type start struct {
	value   string // of the node, or of the input
	made    *maker // nil for an input
	becomes *maker // what makes NaN of the infinity; nil if it is NaN already, or stays infinite
}

// order is the place of a start in the graph: inputs first.
func (o start) order() int {
	if o.made == nil {
		return -1
	}
	return o.made.place
}

// origin goes back from the outputs that are not finite to where that begins. Of several beginnings it takes the first.
func (s *search) origin() *Found {
	f := &Found{Where: nowhere}
	var first *start
	seen := map[string]bool{}
	for _, v := range s.Model.Graph.Output {
		name := v.GetName()
		if !s.flaws[name].bad() {
			continue
		}
		if f.OutputsBad++; len(f.Outputs) < maxOutputs {
			f.Outputs = append(f.Outputs, name)
		}
		for _, o := range s.back(name, seen) {
			if first == nil || o.order() < first.order() {
				first = &o
			}
		}
	}
	if first == nil && f.OutputsBad > 0 { // of an infinity that the user has given
		first = s.firstOf(seen)
	}
	if first == nil {
		return f
	}
	if first.made == nil {
		f.Where, f.Tensor = string(s.kinds[first.value]), &Values{Name: first.value}
		return f
	}
	f.Where, f.Operation = "operation", s.describe(first.made, first.value)
	if first.becomes != nil {
		f.Becomes = s.describe(first.becomes, s.badOutput(first.becomes))
	}
	return f
}

// firstOf is the first node that computes one of some values with something that is not finite, rather one that does
// not pass on what it was given.
func (s *search) firstOf(values map[string]bool) (first *start) {
	passes := func(o *start) bool { return slices.Contains(given, o.made.node.GetOpType()) }
	for name := range values {
		o := &start{value: name, made: s.makers[name]}
		if o.made == nil || !s.flaws[name].bad() {
			continue
		}
		if first == nil || passes(first) && !passes(o) || passes(first) == passes(o) && o.order() < first.order() {
			first = o
		}
	}
	return first
}

// badOutput is the first result of a node that is not finite.
func (s *search) badOutput(m *maker) string {
	for _, name := range m.node.Output {
		if s.flaws[name].bad() {
			return name
		}
	}
	return m.node.Output[0]
}

// back goes back from a value that is not finite.
func (s *search) back(value string, seen map[string]bool) (found []start) {
	open := []string{value}
	for len(open) > 0 {
		name := open[len(open)-1]
		open = open[:len(open)-1]
		if seen[name] {
			continue
		}
		seen[name] = true
		m := s.makers[name]
		if m == nil {
			if s.kinds[name] != "" { // a constant is what the user has given
				found = append(found, start{value: name})
			}
			continue
		}
		var nan, inf []string
		for _, in := range m.reads {
			if f := s.flaws[in]; f.nan {
				nan = append(nan, in)
			} else if f.infinite {
				inf = append(inf, in)
			}
		}
		switch {
		case s.flaws[name].nan && nan != nil:
			open = append(open, nan...)
		case !s.flaws[name].nan && len(nan)+len(inf) > 0:
			open = append(open, append(nan, inf...)...)
		default:
			found = append(found, s.begins(m, name, inf))
		}
	}
	return found
}

// begins is where the NaN or infinity of a node begins that reads no NaN: in an infinity that it reads, unless the user
// has given that.
func (s *search) begins(m *maker, name string, infinite []string) start {
	best := start{value: name, made: m}
	seen := map[string]bool{}
	for len(infinite) > 0 {
		in := infinite[len(infinite)-1]
		infinite = infinite[:len(infinite)-1]
		if seen[in] {
			continue
		}
		seen[in] = true
		from := s.makers[in]
		if from == nil {
			if s.kinds[in] != "" {
				return start{value: in, becomes: m}
			}
			continue
		}
		fresh := true
		for _, read := range from.reads {
			if s.flaws[read].bad() {
				infinite, fresh = append(infinite, read), false
			}
		}
		fresh = fresh && !slices.Contains(given, from.node.GetOpType())
		if fresh && (best.becomes == nil || from.place < best.order()) {
			best = start{value: in, made: from, becomes: m}
		}
	}
	return best
}

// describe describes a node.
func (s *search) describe(m *maker, value string) *Operation {
	o := &Operation{Operator: m.node.GetOpType(), Value: value, Pass: "backward", Line: lineOf(m.node)}
	if s.forward[m] {
		o.Pass = "forward"
	}
	o.After = s.near(m.reads, func(name string) []string {
		if maker := s.makers[name]; maker != nil {
			return maker.reads
		}
		return nil
	})
	o.Before = s.near(m.node.Output, func(name string) (next []string) {
		for _, r := range s.readers[name] {
			next = append(next, r.reads...)
			next = append(next, r.node.Output...)
		}
		return next
	})
	if o.Before == o.After {
		o.Before = ""
	}
	return o
}

// near is the nearest parameter on the way from some values.
func (s *search) near(from []string, next func(string) []string) string {
	seen := map[string]bool{}
	for len(from) > 0 {
		var further []string
		for _, name := range from {
			switch {
			case seen[name]:
				continue
			case s.kinds[name] == Weight:
				return name
			case isGradient(name):
				return strings.TrimPrefix(name, "grad.")
			}
			seen[name] = true
			further = append(further, next(name)...)
		}
		from = further
	}
	return ""
}

// traced finds a place in a stack trace of Python.
var traced = regexp.MustCompile(`File "([^"]+)", line (\d+)`)

// lineOf is the line of the user's module that a node is noted with.
func lineOf(n *onnxpb.NodeProto) string {
	texts := []string{n.GetDocString()}
	for _, p := range n.MetadataProps {
		if key := p.GetKey(); key == "line" {
			return p.GetValue()
		} else if strings.HasSuffix(key, "stack_trace") {
			texts = append(texts, p.GetValue())
		}
	}
	for _, text := range texts {
		if all := traced.FindAllStringSubmatch(text, -1); len(all) > 0 {
			last := all[len(all)-1]
			return last[1] + ":" + last[2]
		}
	}
	return ""
}

// detail adds the values around the origin and the rows.
func (s *search) detail(f *Found) error {
	var gives string
	var names []string
	if f.Tensor != nil {
		gives = f.Tensor.Name
	} else {
		gives = f.Operation.Value
		for _, name := range s.makers[gives].reads {
			if _, float := s.flaws[name]; float {
				names = append(names, name)
			}
		}
	}
	names = append(names, gives)
	values, err := s.fetched(names)
	if err != nil {
		return err
	}
	if f.Tensor != nil {
		f.Tensor = summed(gives, values[gives], -1)
	} else {
		made := values[gives]
		at := slices.IndexFunc(made.data, notFinite)
		f.Operation.Gives = summed(gives, made, -1)
		for _, name := range s.makers[gives].reads {
			if v, ok := values[name]; ok {
				if !slices.Equal(v.shape, made.shape) {
					f.Operation.Reads = append(f.Operation.Reads, *summed(name, v, -1))
				} else {
					f.Operation.Reads = append(f.Operation.Reads, *summed(name, v, at))
				}
			}
		}
	}
	return s.findRows(f, gives, values)
}

// fetched are tensors and inputs of the graph. Constants are left out.
func (s *search) fetched(names []string) (map[string]tensor, error) {
	var made []string
	need := int64(0)
	for _, name := range names {
		if v := s.shaped.Value(name); v.Known() {
			n := int64(8)
			for _, d := range v.Shape {
				n *= d
			}
			need += n
		}
		if s.makers[name] != nil {
			made = append(made, name)
		}
	}
	if err := s.checkMemory(need); err != nil {
		return nil, err
	}
	out := map[string]tensor{}
	if len(made) > 0 {
		var err error
		if out, err = s.fetch(made); err != nil {
			return nil, err
		}
	}
	for _, in := range s.Inputs {
		if slices.Contains(names, in.Name) {
			out[in.Name] = tensor{in.Shape, decoded(in)}
		}
	}
	return out, nil
}

func notFinite(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }

// summed describes a tensor, with its element at a place.
func summed(name string, t tensor, at int) *Values {
	v := &Values{Name: name, Shape: t.shape}
	first := true
	for _, x := range t.data {
		switch {
		case math.IsNaN(x):
			v.NaN++
		case math.IsInf(x, 0):
			v.Infinite++
		case first:
			v.Min, v.Max, first = x, x, false
		default:
			v.Min, v.Max = min(v.Min, x), max(v.Max, x)
		}
	}
	if at >= 0 && at < len(t.data) && !notFinite(t.data[at]) {
		v.At = &t.data[at]
	}
	return v
}

// findRows finds the rows by their part of the tensor, or else by running each of them alone. What was found counts
// without them if there is no time left for that.
func (s *search) findRows(f *Found, name string, values map[string]tensor) error {
	f.Rows = []int{}
	if kind := s.kinds[name]; kind == Weight || kind == State || s.rows < 1 {
		return nil // all of them
	}
	if axis, each := s.axis(name); axis >= 0 {
		f.Rows, f.RowsBy = rowsOf(values[name], axis, each), "tensor"
		return nil
	}
	if s.rows == 1 {
		f.Rows, f.RowsBy = []int{0}, "alone"
		return nil
	}
	for row := range s.rows {
		flaws, err := s.tested([]string{name}, s.alone(row))
		if s.over() != nil {
			f.Rows, f.RowsBy = []int{}, Unknown
			return nil
		}
		if err != nil {
			return err
		}
		if flaws[name].bad() {
			f.Rows, f.RowsBy = append(f.Rows, row), "alone"
		}
	}
	return nil
}

// axis is the axis of a tensor that grows with the number of rows, and how many of its places belong to a row. It is -1
// without one.
func (s *search) axis(name string) (axis, each int) {
	more := shapes.Sizes{}
	for symbol, n := range s.sizes {
		more[symbol] = n
	}
	more[rowSymbol] = s.rows + 1
	r, err := shapes.Infer(s.Model, more)
	if err != nil {
		return -1, 0
	}
	was, is := s.shaped.Value(name), r.Value(name)
	if was == nil || is == nil || !was.Known() || !is.Known() || len(was.Shape) != len(is.Shape) {
		return -1, 0
	}
	axis = -1
	for i, n := range was.Shape {
		if is.Shape[i] == n {
			continue
		}
		if axis >= 0 || n%int64(s.rows) != 0 {
			return -1, 0
		}
		axis, each = i, int(n)/s.rows
	}
	return axis, each
}

// rowsOf are the rows that have an element which is not finite.
func rowsOf(t tensor, axis, each int) (rows []int) {
	inner := 1
	for _, n := range t.shape[axis+1:] {
		inner *= n
	}
	for i, v := range t.data {
		if row := i / inner % t.shape[axis] / each; notFinite(v) && !slices.Contains(rows, row) {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return rows
}

// alone are the inputs of a batch of one of the rows.
func (s *search) alone(row int) []Input {
	out := slices.Clone(s.Inputs)
	for i, in := range out {
		if len(in.Symbols) > 0 && in.Symbols[0] == rowSymbol {
			size := len(in.Data) / in.Shape[0]
			out[i].Data, out[i].Shape = in.Data[row*size:(row+1)*size], slices.Clone(in.Shape)
			out[i].Shape[0] = 1
		}
	}
	return out
}
