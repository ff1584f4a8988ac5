package cudac

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

//go:embed cumulation.cuh
var cumulationTemplates string

// cumulation is the program of a region that adds up along some of its axes, or combines elements in another way. What
// the sums need is computed where they are read, and what needs them where they would be written.
type cumulation struct {
	*body
	node    *fuse.Node
	others  []int // axes, the outermost first
	length  int   // the number of elements along which it adds up
	columns int   // that of the other places

	term          string   // the code of an element, as it is combined
	first         string   // the code of that from which it begins, or ""
	before, after []string // statements that both need, and those that need the sum
}

const (
	// scanThreads is the number of threads that a large GPU runs at the same time, about: an axis is divided among as
	// many as that takes, each with leastPart elements or more.
	scanThreads = 132 * 1024
	leastPart   = 8
	// leastAlong is the length from which on neighbouring threads add up neighbouring elements of the innermost axis.
	leastAlong = 16
	mostInPart = 1024 // threads of a block
	longRow    = 8192 // elements from which on so many threads add up a row
)

// newCumulation writes the program of such a region.
func newCumulation(r *fuse.Region, l *fuse.Loops) (*Kernel, error) {
	s, others := shape{sizes: l.Sizes, R: 1, V: 1}, []int(nil)
	for i := range l.Sizes {
		s.cols = append(s.cols, i)
		if !slices.Contains(l.Along, i) {
			others = append(others, i)
		}
	}
	s.C = s.places(s.cols)
	k := &cumulation{body: emptyBody(r, l, s), others: others, length: s.places(l.Along)}
	k.columns = s.C / k.length
	if err := k.fill(); err != nil {
		return nil, err
	}
	if err := k.readsInputs(); err != nil {
		return nil, err
	}
	last := len(l.Sizes) - 1
	if slices.Contains(l.Along, last) && k.length >= leastAlong {
		return k.acrossThreads(), nil
	}
	return k.alongThreads(), nil
}

// fill writes the statements of all nodes, those that store results last.
func (k *cumulation) fill() error {
	p := &phase{}
	k.phases = []*phase{p}
	var stores []string
	for _, n := range k.region.Nodes {
		if n.Inline {
			continue
		}
		var err error
		switch n.Kind {
		case fuse.Cumulation:
			err = k.terms(n)
			k.before, p.elements = p.elements, nil
			k.values[n.Out[0]] = value{"running", true}
		case fuse.Join:
			err = k.join(n)
		default:
			err = k.elementwise(n)
		}
		if err == nil && slices.Contains(k.region.Out, n.Out[0]) {
			computed := len(p.elements)
			err = k.store(n)
			stores = append(stores, p.elements[computed:]...)
			p.elements = p.elements[:computed]
		}
		if err != nil {
			return err
		}
	}
	k.after = append(p.elements, stores...)
	return nil
}

// terms finds the code of what is combined.
func (k *cumulation) terms(n *fuse.Node) error {
	k.node = n
	var x []string
	for _, o := range n.In {
		v, err := k.operand(n, o, k.loops.Of(n.Out[0]))
		if err != nil {
			return err
		}
		x = append(x, v.code)
	}
	sum, _ := k.types()
	switch n.Op {
	case fuse.Affine:
		k.term, k.first = fmt.Sprintf("affine_of(%s, %s)", x[0], x[1]), fmt.Sprintf("{1, %s}", x[2])
	case fuse.LogAddExp:
		k.term, k.first = fmt.Sprintf("%s{%s, 1}", sum, x[0]), fmt.Sprintf("{%s, 1}", x[1])
	default:
		k.term = fmt.Sprintf("(%s)(%s)", sum, x[0])
	}
	return nil
}

// types are those of a sum in registers, and of the result.
func (k *cumulation) types() (sum, result string) {
	t := k.node.Out[0].Type
	result, _ = held(t)
	switch {
	case k.node.Op == fuse.Affine:
		return "affine", result
	case k.node.Op == fuse.LogAddExp:
		return fmt.Sprintf("logarithmic<%s>", result), result
	case isFloat(t) || isDouble(t):
		return "double", result
	}
	return result, result
}

// rounded is the code of a sum as the node has it.
func (k *cumulation) rounded(sum string) string {
	if k.node.Op != "CumSum" {
		sum = fmt.Sprintf("value_of(%s)", sum)
	}
	switch t := k.node.Out[0].Type; {
	case isShort(t):
		return fmt.Sprintf("rounded((float)(%s))", sum)
	case t == onnxpb.TensorProto_FLOAT:
		return fmt.Sprintf("(float)(%s)", sum)
	}
	return sum
}

// begins writes the variable of a sum with what it is before the first element.
func (k *cumulation) begins(w *writer, name string) {
	sum, _ := k.types()
	w.line("%s %s;", sum, name)
	if k.first == "" {
		w.line("clear(%s);", name)
		return
	}
	w.line("{")
	k.element(w, "0")
	w.line("%s = %s;", name, k.first)
	w.line("}")
}

// element writes the statements before the sum for the element i of the axis.
func (k *cumulation) element(w *writer, i string) {
	if k.node.Reverse {
		i = fmt.Sprintf("%d - %s", k.length-1, i)
	}
	w.line("const int position = %s;", i)
	w.axes(k.shape, k.loops.Along, "position")
	w.divisions(k.body, true)
	for _, statement := range k.before {
		w.line("%s", statement)
	}
}

// begin writes the head of the program. Statements that are the same at all places follow once it is known whether a
// thread has any.
func (k *cumulation) begin(w *writer, threads int) {
	if k.node.Op == fuse.Affine {
		w.WriteString(preciseTemplates)
	}
	w.WriteString(cumulationTemplates)
	w.begin(k.body, threads, 0)
	w.line("const bool first = blockIdx.x == 0 && threadIdx.x == 0;")
}

func (k *cumulation) end(w *writer) {
	if k.node.Op == fuse.Affine {
		w.endPrecise()
	}
}

// row writes those statements, and the axes of a column.
func (k *cumulation) row(w *writer) {
	w.line("const int column = live ? own : %d;", k.columns-1)
	for _, statement := range k.phases[0].row {
		w.line("%s", statement)
	}
	w.axes(k.shape, k.others, "column")
}

// alongThreads is the program in which each thread walks along the axis, or along a part of it, and neighbouring
// threads have neighbouring columns. With parts, the threads first add up their parts, and then once more, from the sum
// of the parts before.
func (k *cumulation) alongThreads() *Kernel {
	across, parts := min(k.columns, warp), 1
	for across*parts*2 <= mostInPart && k.columns*parts < scanThreads && k.length >= 2*parts*leastPart {
		parts *= 2
	}
	across = min(k.columns, max(across, blockThreads/parts))
	part := ceil(k.length, parts)
	w := &writer{}
	sum, result := k.types()
	k.begin(w, across*parts)
	w.line("const int across = threadIdx.x %% %d, part = threadIdx.x / %d, own = blockIdx.x * %d + across;", across,
		across, across)
	w.line("const bool live = own < %d;", k.columns)
	k.row(w)
	w.line("const int begin = part * %d, end = min(begin + %d, %d);", part, part, k.length)
	if parts > 1 {
		w.line("%s own_sum;", sum)
		w.line("clear(own_sum);")
		w.line("__shared__ %s sums[%d][%d];", sum, parts, across)
		ahead := 8
		if len(k.inputs) > 2 { // registers have no room for what so many elements read
			ahead /= 2
		}
		w.line("#pragma unroll %d", ahead)
		w.line("for (int i = begin; i < end; i++) {")
		k.element(w, "i")
		w.line("own_sum = joined(own_sum, %s);", k.term)
		w.line("}")
		w.line("sums[part][across] = own_sum;")
		w.line("__syncthreads();")
	}
	k.begins(w, "sum")
	if parts > 1 {
		w.line("for (int i = 0; i < part; i++) sum = joined(sum, sums[i][across]);")
	}
	w.line("#pragma unroll 4")
	w.line("for (int i = begin; i < end; i++) {")
	k.element(w, "i")
	if k.node.Exclusive {
		w.line("const %s running = %s;", result, k.rounded("sum"))
		w.line("sum = joined(sum, %s);", k.term)
	} else {
		w.line("sum = joined(sum, %s);", k.term)
		w.line("const %s running = %s;", result, k.rounded("sum"))
	}
	for _, statement := range k.after {
		w.line("%s", statement)
	}
	w.line("}")
	w.line("}")
	k.end(w)
	return k.kernel(w, [2]int{ceil(k.columns, across), 1}, across*parts)
}

// acrossThreads is the program in which neighbouring threads have neighbouring elements of the axis, which is the
// innermost one: a warp adds up a short row, and a block a long one, as many elements at a time as it has threads.
func (k *cumulation) acrossThreads() *Kernel {
	width := warp
	switch {
	case k.length >= longRow: // there are few, as of samples
		width = mostInPart
	case k.length > maxWarpRow:
		width = blockThreads
	}
	threads := max(width, blockThreads)
	rows := threads / width
	w := &writer{}
	sum, result := k.types()
	k.begin(w, threads)
	w.line("const int lane = threadIdx.x %% %d, own = blockIdx.x * %d + threadIdx.x / %d;", width, rows, width)
	w.line("const bool live = own < %d;", k.columns)
	k.row(w)
	w.line("const bool row_live = live;")
	k.begins(w, "total")
	w.line("for (int begin = 0; begin < %d; begin += %d) {", k.length, width)
	w.line("const int i = min(begin + lane, %d);", k.length-1)
	w.line("const bool live = row_live && begin + lane < %d;", k.length)
	k.element(w, "i")
	w.line("%s before, all, own_element;", sum)
	w.line("clear(own_element);")
	w.line("if (live) own_element = %s;", k.term)
	w.line("const %s up_to = add_up<%d, %s>(own_element, before, all);", sum, width, sum)
	if k.node.Exclusive {
		w.line("const %s running = %s;", result, k.rounded("joined(total, before)"))
	} else {
		w.line("const %s running = %s;", result, k.rounded("joined(total, up_to)"))
	}
	w.line("total = joined(total, all);")
	for _, statement := range k.after {
		w.line("%s", statement)
	}
	w.line("}")
	w.line("}")
	k.end(w)
	return k.kernel(w, [2]int{ceil(k.columns, rows), 1}, threads)
}
