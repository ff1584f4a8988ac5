package cudac

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// body is what a kernel computes at each place. It has phases: one begins with the results of the reductions of the one
// before it. What depends on the columns is computed for each element of a vector, the rest once for each row.
type body struct {
	region *fuse.Region
	loops  *fuse.Loops
	shape  shape
	places *places

	inputs []*fuse.Tensor
	phases []*phase
	sums   []*fuse.Node // column sums
	whole  bool         // a block adds all rows of its columns, so the sums are complete
	// completion, unless nil, is how the last blocks complete the sums.
	completion *completion

	values map[*fuse.Tensor]value
	loads  map[string]value
	equal  map[string]value     // what has been computed within a phase, by its code
	begins map[*fuse.Node]int   // the phase in which a node is computed
	lives  map[*fuse.Tensor]int // the last phase in which a node reads a tensor
	// unrounded has outputs in bf16 as they are before they are rounded: a vector is rounded in pairs when it is
	// stored.
	unrounded map[*fuse.Tensor]string
	names     int
	meter     meter

	square  bool // results are stored through a square (tile)
	squares []squareStore
}

// value is a variable of the kernel, or a constant. A vector value differs from element to element.
type value struct {
	code   string
	vector bool
}

// phase has the statements of a phase, in the order in which they run.
type phase struct {
	row        []string // once a row
	arrays     []string // declarations
	loads      []access // vectors
	elements   []string // for each element
	stores     []access // vectors
	reductions []rowReduction
}

// rowReduction combines what the threads of a row have found: each has its own in the variable NAME_partial.
type rowReduction struct {
	op, register, name string
	short              bool // the result is bf16
}

// access moves a vector of consecutive elements between memory and an array.
type access struct {
	array, pointer string
	index          string // into the array: "j" for one that lives through phases, otherwise "jj"
	stored, held   string // types in memory and of the array
	at             affine
	condition      string // or ""
	fill           string // where the condition is false
}

func newBody(r *fuse.Region, loops *fuse.Loops, s shape) (*body, error) {
	b := emptyBody(r, loops, s)
	return b, b.fill()
}

func emptyBody(r *fuse.Region, loops *fuse.Loops, s shape) *body {
	return &body{
		region: r, loops: loops, shape: s, places: newPlaces(s.sizes), values: map[*fuse.Tensor]value{},
		loads: map[string]value{}, equal: map[string]value{}, begins: map[*fuse.Node]int{},
		lives: map[*fuse.Tensor]int{}, unrounded: map[*fuse.Tensor]string{},
	}
}

// fill writes the statements of all nodes.
func (b *body) fill() error {
	b.plan()
	for _, n := range b.region.Nodes {
		if n.Inline {
			continue
		}
		var err error
		column := slices.Contains(b.loops.Columns, n)
		switch {
		case column:
			err = b.sumColumns(n)
		case n.Kind == fuse.Reduction:
			err = b.reduce(n)
		case n.Kind == fuse.Join:
			err = b.join(n)
		default:
			err = b.elementwise(n)
		}
		if err == nil && !column && slices.Contains(b.region.Out, n.Out[0]) {
			err = b.store(n)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// plan finds the phase of each node, and until which phase its result is read.
func (b *body) plan() {
	phases := map[*fuse.Tensor]int{}
	last := 0
	for _, n := range b.region.Nodes {
		if n.Inline {
			continue
		}
		own := 0
		for _, t := range reads(n) {
			own = max(own, phases[t])
		}
		for _, t := range reads(n) {
			b.lives[t] = max(b.lives[t], own)
		}
		b.begins[n] = own
		if n.Kind == fuse.Reduction && !slices.Contains(b.loops.Columns, n) {
			own++
		}
		phases[n.Out[0]] = own
		last = max(last, own)
	}
	for range last + 1 {
		b.phases = append(b.phases, &phase{})
	}
}

// reads returns the tensors that a node reads, and those that what it computes inline reads.
func reads(n *fuse.Node) (list []*fuse.Tensor) {
	for _, o := range n.In {
		if from := o.Tensor.From; from != nil && from.Inline {
			list = append(list, reads(from)...)
			continue
		}
		list = append(list, o.Tensor)
	}
	return list
}

func (b *body) name() string {
	b.names++
	return fmt.Sprintf("x%d", b.names)
}

func (b *body) input(t *fuse.Tensor) string {
	i := slices.Index(b.inputs, t)
	if i < 0 {
		i = len(b.inputs)
		b.inputs = append(b.inputs, t)
	}
	return fmt.Sprintf("p%d", i)
}

// varies reports whether a place depends on the column.
func (b *body) varies(e affine) bool {
	for name := range e.factors {
		for _, a := range b.shape.cols {
			if name == axisName(a) {
				return true
			}
		}
		if q, ok := b.places.division(name); ok && b.varies(q.value) {
			return true
		}
	}
	return false
}

// advances reports whether a place depends on the row.
func (b *body) advances(e affine) bool {
	for name := range e.factors {
		for _, a := range b.shape.rows {
			if name == axisName(a) {
				return true
			}
		}
		if q, ok := b.places.division(name); ok && b.advances(q.value) {
			return true
		}
	}
	return false
}

// consecutive reports whether the elements of a vector are consecutive in memory and aligned, and all or none of them
// pass the guards.
func (b *body) consecutive(at affine, guards []guard) bool {
	if step, aligned := b.steps(at); b.shape.V == 1 || step != 1 || !aligned {
		return false
	}
	for _, g := range guards {
		step, _ := b.steps(g.value)
		_, from := b.steps(g.value.plusConstant(-g.from))
		_, to := b.steps(g.value.plusConstant(-g.to))
		if step != 0 && (step != 1 || !from || !to) {
			return false
		}
	}
	return true
}

const unsteady = math.MinInt

// steps returns by how much a value grows from one element of a vector to the next, or unsteady, and whether it is a
// multiple of the vector's length at the beginning of each vector.
func (b *body) steps(e affine) (step int, aligned bool) {
	aligned = e.constant%b.shape.V == 0
	for name, factor := range e.factors {
		grows, even := b.variableSteps(name)
		aligned = aligned && (even || factor%b.shape.V == 0)
		switch {
		case grows == unsteady:
			return unsteady, false
		case grows != 0:
			step += grows * factor
		}
	}
	return step, aligned
}

// variableSteps is steps of one variable.
func (b *body) variableSteps(name string) (step int, aligned bool) {
	q, ok := b.places.division(name)
	if !ok {
		if name == b.innermost() {
			return 1, true
		}
		return 0, false
	}
	step, aligned = b.steps(q.value)
	whole := aligned && q.divisor%b.shape.V == 0 // a vector has one quotient
	switch {
	case step == 0:
		return 0, whole && q.rest
	case step == 1 && whole && q.rest:
		return 1, true
	case step == 1 && whole:
		return 0, false
	}
	return unsteady, false
}

func (b *body) innermost() string { return axisName(b.shape.cols[len(b.shape.cols)-1]) }

// operand returns an operand of a node that computes over dimensions with these axes.
func (b *body) operand(n *fuse.Node, o fuse.Operand, axes [][]int) (value, error) {
	if v, ok := b.values[o.Tensor]; ok {
		return v, nil
	}
	return b.read(n, o, b.places.index(axes), nil)
}

// read returns the element of an operand for an index of a domain. Where a guard says that there is none, it may be
// any.
func (b *body) read(n *fuse.Node, o fuse.Operand, index []affine, guards []guard) (value, error) {
	source := b.places.source(index, o)
	if from := o.Tensor.From; from != nil && from.Inline {
		return b.inline(n, from, source, guards)
	}
	fill := ""
	if guards != nil {
		fill = "0"
	}
	return b.load(n, o.Tensor, b.places.place(source, o.Tensor), guards, fill)
}

// load reads an element of an input, or fill where a guard says that there is none.
func (b *body) load(n *fuse.Node, t *fuse.Tensor, at affine, guards []guard, fill string) (value, error) {
	register, ok := held(t.Type)
	if !ok {
		return value{}, unsupported("its elements are of type %s", t.Type)
	}
	// larger integers are not exact
	if t.Constant && len(t.Data) == 1 && len(guards) == 0 && math.Abs(t.Data[0]) < 1<<53 {
		return value{code: literal(t.Data[0], t.Type)}, nil
	}
	vector, row := b.varies(at), b.advances(at)
	for _, g := range guards {
		vector, row = vector || b.varies(g.value), row || b.advances(g.value)
	}
	// Rows are read from memory once, at the beginning. What all rows read comes from the cache, when it is needed.
	home, until := 0, b.lives[t]
	if vector && !row {
		home, until = b.begins[n], b.begins[n]
	}
	key := fmt.Sprintf("%p %s %v %s %d", t, at, guards, fill, home)
	if v, ok := b.loads[key]; ok {
		return v, nil
	}
	pointer, first := b.input(t), b.phases[home]
	v := value{code: b.name(), vector: vector}
	element := fmt.Sprintf("%s[%s]", pointer, at)
	if isShort(t.Type) {
		element = "float(" + element + ")"
	}
	condition := conditions(guards)
	if condition != "" {
		element = fmt.Sprintf("(%s) ? %s : (%s)%s", condition, element, register, fill)
	}
	switch {
	case !vector:
		b.meter.lines++
		first.row = append(first.row, fmt.Sprintf("const %s %s = %s;", register, v.code, element))
	case b.consecutive(at, guards):
		b.lookUp(t, at, true)
		index := b.array(first, register, v.code, home, until, true)
		first.loads = append(first.loads, access{v.code, pointer, index, stored(t.Type), register, at, condition, fill})
		v.code += "[" + index + "]"
	default:
		b.lookUp(t, at, false)
		v.code = b.assign(home, until, register, v.code, element)
	}
	b.loads[key] = v
	return v, nil
}

// array declares an array for a vector value and returns the variable that indexes it: one that lives through phases
// has elements for the whole row.
func (b *body) array(p *phase, register, name string, begins, until int, always bool) (index string) {
	switch {
	case until > begins:
		p.arrays = append(p.arrays, fmt.Sprintf("%s %s[NV];", register, name))
		return "j"
	case always:
		return "jj"
	}
	return ""
}

// assign adds the statement that computes a vector value in a phase, and returns the code of an element.
func (b *body) assign(begins, until int, register, name, code string) string {
	p := b.phases[begins]
	if b.array(p, register, name, begins, until, false) == "" {
		p.elements = append(p.elements, fmt.Sprintf("const %s %s = %s;", register, name, code))
		return name
	}
	p.elements = append(p.elements, fmt.Sprintf("%s[j] = %s;", name, code))
	return name + "[j]"
}

func conditions(guards []guard) string {
	var list []string
	for _, g := range guards {
		list = append(list, fmt.Sprintf("%s >= %d && %s < %d", g.value, g.from, g.value, g.to))
	}
	return strings.Join(list, " && ")
}

// define adds a value that a node computes. Nodes that a region computes again, each for one reader, are computed once
// in a phase.
func (b *body) define(n *fuse.Node, vector bool, code string) {
	t := n.Out[0]
	register, _ := held(t.Type)
	begins := b.begins[n]
	key := fmt.Sprintf("%d %s %s", begins, register, code)
	if v, ok := b.equal[key]; ok && b.lives[t] == begins {
		b.values[t] = v
		return
	}
	v := value{code: b.name(), vector: vector}
	if vector {
		v.code = b.assign(begins, b.lives[t], register, v.code, code)
	} else {
		b.phases[begins].row = append(b.phases[begins].row, fmt.Sprintf("const %s %s = %s;", register, v.code, code))
	}
	b.values[t] = v
	if b.lives[t] == begins {
		b.equal[key] = v
	}
}
