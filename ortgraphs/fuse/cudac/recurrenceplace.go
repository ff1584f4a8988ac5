package cudac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// elements writes what a level computes at a place: row a0, unit a1.
type elements struct {
	level  *level
	places *places
	known  map[string]string // by element
	loads  []string          // of what is in memory before the products
	lines  []string
}

func (l *level) elements() *elements {
	p := l.of.places(map[string]int{"a0": l.of.rows, "a1": l.width})
	return &elements{level: l, places: p, known: map[string]string{}}
}

// each calls store with each element of a tensor that belongs to the place.
func (e *elements) each(t *fuse.Tensor, store func(value string, at affine)) error {
	columns := t.Shape[len(t.Shape)-1]
	for c := 0; c < columns; c += e.level.width {
		at := e.level.place(columns).plusConstant(c)
		value, err := e.value(t, e.places.unflatten(at, t.Shape))
		if err != nil {
			return err
		}
		store(value, at)
	}
	return nil
}

// value returns the name of an element.
func (e *elements) value(t *fuse.Tensor, index []affine) (string, error) {
	at := e.places.place(index, t)
	key := fmt.Sprintf("%p %s", t, at)
	if name, ok := e.known[key]; ok {
		return name, nil
	}
	register, ok := held(t.Type)
	if !ok || isDouble(t.Type) { // the precise functions of a step are of f32
		return "", unsupported("its elements are of type %s", t.Type)
	}
	lines := &e.lines
	var code string
	var err error
	switch n := t.From; {
	case t.Constant && len(t.Data) == 1:
		return literal(t.Data[0], t.Type), nil
	case t.Constant:
		return "", unsupported("a step reads the constant %s of %v", t.Name, t.Shape)
	case n == nil:
		lines = &e.loads
		code = e.load(t, index)
	case n.Kind == fuse.Product:
		code, err = e.sum(n, index)
	case n.Kind == fuse.Join:
		return e.joined(n, index)
	default:
		code, err = e.computed(n, index)
	}
	if err != nil {
		return "", err
	}
	name := fmt.Sprintf("x%d", len(e.known))
	e.known[key] = name
	*lines = append(*lines, fmt.Sprintf("const %s %s = %s;", register, name, code))
	return name, nil
}

// load reads what the step is given.
func (e *elements) load(t *fuse.Tensor, index []affine) string {
	k := e.level.of
	i := slices.Index(k.of.Step.Inputs, t)
	if i < k.of.Carries {
		at := e.places.place(index, t)
		e.level.passed = append(e.level.passed, passedValue{i, at})
		if k.alone {
			return fmt.Sprintf("*(%s + %s)", k.copyOf(t, false), at)
		}
		return fmt.Sprintf("read_fresh(%s + %s)", k.copyOf(t, false), at)
	}
	if o := k.node.In[i].Tensor; o.Constant && len(o.Data) == 1 {
		return literal(o.Data[0], o.Type)
	}
	return k.given(e.places, i, index)
}

func (e *elements) computed(n *fuse.Node, index []affine) (string, error) {
	var operands []string
	for _, o := range n.In {
		operand, err := e.value(o.Tensor, e.places.source(index, o))
		if err != nil {
			return "", err
		}
		operands = append(operands, operand)
	}
	return expression(n, operands)
}

// joined returns the element of the piece in which it is.
func (e *elements) joined(n *fuse.Node, index []affine) (string, error) {
	axis := n.Axes[0]
	first, last := e.places.bounds(index[axis])
	begin := 0
	for _, o := range n.In {
		end := begin + o.Shape()[axis]
		if first >= begin && last < end {
			index = slices.Clone(index)
			index[axis] = index[axis].plusConstant(-begin)
			return e.value(o.Tensor, e.places.source(index, o))
		}
		begin = end
	}
	return "", unsupported("%s is joined of pieces that are no columns of all units", n.Out[0].Name)
}

// sum reads an element of a product, of which the warps have left the parts.
func (e *elements) sum(n *fuse.Node, index []affine) (string, error) {
	l, shape := e.level, n.Out[0].Shape
	columns := shape[len(shape)-1]
	column, ok := l.column(flat(index, shape), columns)
	if !ok {
		return "", unsupported("%s is read at another place", n.Out[0].Name)
	}
	p, group := l.group(n, column)
	if err := p.check(); err != nil {
		return "", err
	}
	var parts []string
	for part := range p.split {
		parts = append(parts, fmt.Sprintf("memory[%d + a0 * %d + own]",
			p.sums+part*p.bandRows(l.of.rows)*p.columns+group*l.units, p.columns))
	}
	code := strings.Join(parts, " + ")
	if isShort(n.Out[0].Type) {
		code = "rounded(" + code + ")"
	}
	return code, nil
}

// writeLevel writes the products of a level, and what is computed of them.
func (k *recurrence) writeLevel(w *writer, l *level) error {
	e := l.elements()
	stores := &writer{depth: w.depth + 2}
	for _, t := range l.writes {
		if err := e.each(t, func(value string, at affine) { k.store(stores, t, value, at) }); err != nil {
			return err
		}
	}
	w.line("{")
	const axes = "const int own = place %% %d, a0 = place / %d, a1 = block * %d + own;"
	if k.rows*l.units <= recurrenceThreads {
		w.line("const int place = threadIdx.x;")
		w.line(axes, l.units, l.units, l.units)
		w.line("const bool live = a0 < %d && a1 < %d;", k.rows, l.width)
		w.define(e.places)
		for _, line := range e.loads {
			name, code, _ := strings.Cut(line, " = ")
			w.line("%s = live ? %s : 0;", name, strings.TrimSuffix(code, ";"))
		}
		l.multiply(w)
		w.line("if (live) {")
	} else {
		l.multiply(w)
		w.line("for (int place = threadIdx.x; place < %d; place += %d) {", k.rows*l.units, recurrenceThreads)
		w.line(axes, l.units, l.units, l.units)
		w.line("if (a1 >= %d) continue;", l.width)
		w.define(e.places)
		for _, line := range e.loads {
			w.line("%s", line)
		}
	}
	for _, line := range e.lines {
		w.line("%s", line)
	}
	w.WriteString(stores.String())
	w.line("}")
	w.line("}")
	return nil
}

// define writes the variables of divisions.
func (w *writer) define(p *places) {
	for _, q := range p.divisions {
		w.division(q)
	}
}

// store writes an element to memory: for the next step, for products of this one, and to the results.
func (k *recurrence) store(w *writer, t *fuse.Tensor, value string, at affine) {
	if slices.Contains(k.operands, t) {
		w.line("(%s)[%s] = %s;", k.copyOf(t, true), at, value)
	}
	for i, o := range k.of.Step.Outputs {
		if o.Tensor != t {
			continue
		}
		if i < k.of.Carries {
			w.line("(%s)[%s] = %s;", k.copyOf(k.of.Step.Inputs[i], true), at, value)
		}
		result := slices.Index(k.region.Out, k.node.Out[i])
		switch code := inMemory(stored(t.Type), value); {
		case result < 0:
		case i < k.of.Carries:
			w.line("if (step == %d) o%d[%s] = %s;", k.of.Steps-1, result, at, code)
		default:
			item := k.item(k.of.BackwardsOut[i-k.of.Carries]).times(t.Elements())
			w.line("o%d[%s] = %s;", result, item.plus(at), code)
		}
	}
}

// multiply writes the products of a level: their rows are brought to shared memory, as many at a time as there is room
// for.
func (l *level) multiply(w *writer) {
	for _, p := range l.products {
		rows, terms := p.bandRows(l.of.rows), p.node.Terms()
		w.line("for (int first = 0; first < %d; first += %d) {", rows, p.chunk)
		w.line("const int rows = %d < %d - first ? %d : %d - first;", p.chunk, rows, p.chunk, rows)
		w.line("__syncthreads();")
		from, fresh := p.source()
		if fresh && terms%4 == 0 { // copies begin at multiples of 16 bytes
			w.line("for (int i = threadIdx.x * 4; i < rows * %d; i += %d) {", p.inner, recurrenceThreads*4)
			w.line("const int row = first + i / %d, k = i %% %d;", p.inner, p.inner)
			w.line("vec<float, 4> v = {};")
			w.line("if (row < %d) v = read_fresh_4(%s + row * %d + k);", l.of.rows, from, terms)
			w.line("*(vec<float, 4> *)(memory + %d + i) = v;", p.staged)
		} else {
			w.line("for (int i = threadIdx.x; i < rows * %d; i += %d) {", p.inner, recurrenceThreads)
			w.line("const int row = first + i / %d, k = i %% %d;", p.inner, p.inner)
			element := fmt.Sprintf("read_fresh(%s + row * %d + k)", from, terms)
			if !fresh {
				places := l.of.places(map[string]int{"row": l.of.rows, "k": terms})
				t := p.node.In[0].Tensor
				index := places.unflatten(variable("row", terms).plus(variable("k", 1)), t.Shape)
				element = l.of.given(places, slices.Index(l.of.of.Step.Inputs, t), index)
				w.define(places)
			}
			w.line("memory[%d + i] = row < %d && k < %d ? %s : 0.f;", p.staged, l.of.rows, terms, element)
		}
		w.line("}")
		w.line("__syncthreads();")
		weights := fmt.Sprintf("memory + %d", p.weights)
		if !p.resident {
			weights = fmt.Sprintf("scratch + %d + block * %d", p.weights, p.columns*p.inner)
		}
		w.line("multiply_rows<%d, %d, %d, %d>(memory + %d, %s, memory + %d + first * %d, rows, %d, %d);", p.tile[0],
			p.tile[1], p.inner, p.split, p.staged, weights, p.sums, p.columns, p.columns, rows*p.columns)
		w.line("}")
	}
	if len(l.products) > 0 {
		w.line("__syncthreads();")
	}
}

// source is the address of a product's rows if they are in the scratch memory, and not in that of the region.
func (p *recurrentProduct) source() (address string, fresh bool) {
	k, t := p.level.of, p.node.In[0].Tensor
	switch i := slices.Index(k.of.Step.Inputs, t); {
	case i < 0:
		return k.copyOf(t, true), true
	case i < k.of.Carries:
		return k.copyOf(t, false), true
	}
	return "", false
}
