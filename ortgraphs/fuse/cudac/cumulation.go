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

// cumulation is the program of a region that adds up along some of its axes. What the sums need is computed where they
// are read, and what needs them where they would be written.
type cumulation struct {
	*body
	node    *fuse.Node
	others  []int // axes, the outermost first
	length  int   // the number of elements along which it adds up
	columns int   // that of the other places

	term          string   // the code of an element of the operand
	before, after []string // statements that it needs, and those that need the sum
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
			var x value
			x, err = k.operand(n, n.In[0], k.loops.Of(n.Out[0]))
			k.node, k.term, k.before, p.elements = n, x.code, p.elements, nil
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

// types are those of a sum in registers, and of the result.
func (k *cumulation) types() (sum, result string) {
	t := k.node.Out[0].Type
	result, _ = held(t)
	if isFloat(t) || isDouble(t) {
		return "double", result
	}
	return result, result
}

// rounded is the code of a sum as the node has it.
func (k *cumulation) rounded(sum string) string {
	switch t := k.node.Out[0].Type; {
	case isShort(t):
		return fmt.Sprintf("rounded((float)(%s))", sum)
	case t == onnxpb.TensorProto_FLOAT:
		return fmt.Sprintf("(float)(%s)", sum)
	}
	return sum
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
	w.WriteString(cumulationTemplates)
	w.begin(k.body, threads, 0)
	w.line("const bool first = blockIdx.x == 0 && threadIdx.x == 0;")
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
	w.line("%s sum = 0;", sum)
	if parts > 1 {
		w.line("__shared__ %s sums[%d][%d];", sum, parts, across)
		w.line("#pragma unroll 8")
		w.line("for (int i = begin; i < end; i++) {")
		k.element(w, "i")
		w.line("sum += %s;", k.term)
		w.line("}")
		w.line("sums[part][across] = sum;")
		w.line("__syncthreads();")
		w.line("sum = 0;")
		w.line("for (int i = 0; i < part; i++) sum += sums[i][across];")
	}
	w.line("#pragma unroll 4")
	w.line("for (int i = begin; i < end; i++) {")
	k.element(w, "i")
	if k.node.Exclusive {
		w.line("const %s running = %s;", result, k.rounded("sum"))
		w.line("sum += %s;", k.term)
	} else {
		w.line("sum += %s;", k.term)
		w.line("const %s running = %s;", result, k.rounded("sum"))
	}
	for _, statement := range k.after {
		w.line("%s", statement)
	}
	w.line("}")
	w.line("}")
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
	w.line("%s total = 0;", sum)
	w.line("for (int begin = 0; begin < %d; begin += %d) {", k.length, width)
	w.line("const int i = min(begin + lane, %d);", k.length-1)
	w.line("const bool live = row_live && begin + lane < %d;", k.length)
	k.element(w, "i")
	w.line("%s before, all;", sum)
	w.line("const %s up_to = add_up<%d, %s>(live ? (%s)(%s) : (%s)0, before, all);", sum, width, sum, sum, k.term, sum)
	if k.node.Exclusive {
		w.line("const %s running = %s;", result, k.rounded("total + before"))
	} else {
		w.line("const %s running = %s;", result, k.rounded("total + up_to"))
	}
	w.line("total += all;")
	for _, statement := range k.after {
		w.line("%s", statement)
	}
	w.line("}")
	w.line("}")
	return k.kernel(w, [2]int{ceil(k.columns, rows), 1}, threads)
}
