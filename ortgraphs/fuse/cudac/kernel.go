package cudac

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// Prelude has what the functions of all programs share. A program is compiled after it.
//
//go:embed prelude.cuh
var Prelude string

// Options are those with which NVRTC compiles a program: quotients and roots may be wrong in the last two bits, and
// numbers below 2^-126 are 0. The exact versions are functions with branches, which cost more per element than reading
// it from memory.
var Options = []string{"-ftz=true", "-prec-div=false", "-prec-sqrt=false"}

// Kernel is the program of a region.
type Kernel struct {
	// Source is the program without Prelude. Regions that compute the same have the same source. It is empty if a
	// library does all.
	Source string
	// In are the tensors that it reads, in the order of the arguments. Out follow them, then the partial sums of Sums
	// and the scratch memory, as far as there are any.
	In, Out []*fuse.Tensor
	// Scratch is the size of the scratch memory in bytes. It has no contents before and none after.
	Scratch int
	// Sums are the region's other outputs: the program [Sums] completes them from partial sums, f32 of PartialsLength
	// elements.
	Sums           []Sum
	PartialsLength int
	// Caches is what it asks of the GPU's caches, if it computes places.
	Caches Caches
	// Meets says that blocks wait for each other in each step of a recurrence.
	Meets bool
	// Launches run one after another.
	Launches []Launch
}

// Launch runs a function of the program. All arguments are pointers to memory of the GPU, aligned to 16 bytes.
type Launch struct {
	Function string
	// Blocks is the size of the grid, Threads that of a block.
	Blocks  [2]int
	Threads int
	// Shared is how much shared memory a block asks for, in bytes, apart from what its program declares.
	Shared int
	// Cooperative says that the blocks wait for each other: all of them have to run at the same time.
	Cooperative bool
	// Arguments are positions in the list of In, Out, the partial sums and the scratch memory.
	Arguments []int
	// Products, unless nil, are computed by a library instead of a function. It finds the matrices of many as
	// [Addresses] says, and those of one that is planned as the first arguments of the call.
	Products *fuse.Products
	// Convolution, unless nil, is computed by a library, too, from the call's inputs.
	Convolution *fuse.Convolution
}

// Generate writes the program of a region for a target. The error is an [UnsupportedError] if there is no rule for it.
func Generate(r *fuse.Region, target Target) (*Kernel, error) {
	for _, t := range slices.Concat(r.In, r.Out) {
		if t.Elements() > math.MaxInt32 || t.Elements() == 0 {
			return nil, unsupported("%s has %d elements", t.Name, t.Elements())
		}
	}
	for _, n := range r.Nodes {
		if slices.ContainsFunc(n.In, func(o fuse.Operand) bool { return product(o.Shape()) == 0 }) {
			return nil, unsupported("%s reads no elements of an operand", n.Out[0].Name)
		}
	}
	switch w := r.Work.(type) {
	case fuse.Places:
		return newPlaced(r)
	case *fuse.Attention:
		return generateAttention(r, w, target)
	case *fuse.Products:
		return newProducts(r, w), nil
	case *fuse.Convolution:
		return newConvolution(r, w), nil
	case *fuse.NarrowGradient:
		return newNarrowGradient(r, w), nil
	case *fuse.RecurrenceKernel:
		return generateRecurrences(r, w, target)
	case *fuse.Depthwise:
		return newDepthwise(r, w)
	case fuse.Biases:
		return newBiases(r), nil
	}
	return nil, unsupported("no rule knows %T", r.Work)
}

// newPlaced writes the program of a region that computes at the places of one domain.
func newPlaced(r *fuse.Region) (*Kernel, error) {
	l := r.Loops()
	if len(l.Along) > 0 {
		return newCumulation(r, l)
	}
	s := newShape(r, l)
	if s.R > math.MaxInt32 || s.R*s.C == 0 {
		return nil, unsupported("%d rows of %d places", s.R, s.C)
	}
	if t, ok := newTile(r, l, s); ok {
		if k, err := t.generate(r, l); err == nil {
			return k, nil
		}
	}
	b, err := newBody(r, l, s)
	crowded := err == nil && b.crowded()
	if crowded && s.V > crowdedVector {
		s.V = crowdedVector
		b, err = newBody(r, l, s)
	}
	if err != nil {
		return nil, err
	}
	if err := b.readsInputs(); err != nil {
		return nil, err
	}
	if s.reduces {
		return newRows(b).kernel(), nil
	}
	return newColumns(b, crowded)
}

// readsInputs returns an error if the program reads what is no input of the region.
func (b *body) readsInputs() error {
	for _, t := range b.inputs {
		if !slices.Contains(b.region.In, t) {
			return unsupported("%s is no input of the region", t.Name)
		}
	}
	return nil
}

// writer collects the lines of a program.
type writer struct {
	strings.Builder
	depth int
}

// line writes a line. Braces at its ends change the indentation.
func (w *writer) line(format string, arguments ...any) {
	text := fmt.Sprintf(format, arguments...)
	if strings.HasPrefix(text, "}") {
		w.depth--
	}
	fmt.Fprintf(w, "%s%s\n", strings.Repeat("\t", w.depth), text)
	if strings.HasSuffix(text, "{") {
		w.depth++
	}
}

// begin writes the head of the region's function.
func (w *writer) begin(b *body, threads, blocksPerProcessor int) {
	if b.completion != nil {
		b.completion.declare(w)
	}
	var parameters []string
	for i, t := range b.inputs {
		parameters = append(parameters, fmt.Sprintf("const %s *__restrict__ p%d", stored(t.Type), i))
	}
	for i, t := range b.region.Out {
		if !b.isPartial(t) {
			parameters = append(parameters, fmt.Sprintf("%s *__restrict__ o%d", stored(t.Type), i))
		}
	}
	if len(b.sums) > 0 && !b.whole {
		parameters = append(parameters, "float *__restrict__ partials")
	}
	bounds := fmt.Sprint(threads)
	if blocksPerProcessor > 0 {
		bounds += fmt.Sprintf(", %d", blocksPerProcessor)
	}
	w.line("extern \"C\" __global__ void __launch_bounds__(%s) region(%s) {", bounds, strings.Join(parameters, ", "))
}

// isPartial reports whether the kernel leaves only partial sums of an output.
func (b *body) isPartial(t *fuse.Tensor) bool {
	return !b.whole && b.completion == nil &&
		slices.ContainsFunc(b.sums, func(n *fuse.Node) bool { return n.Out[0] == t })
}

// kernel completes a program whose function region has a grid of that size.
func (b *body) kernel(w *writer, blocks [2]int, threads int) *Kernel {
	k := &Kernel{Source: w.String(), In: b.inputs, Sums: b.left(blocks[0]), Caches: b.caches()}
	k.PartialsLength = len(k.Sums) * blocks[0] * b.shape.C
	for _, t := range b.region.Out {
		if !b.isPartial(t) {
			k.Out = append(k.Out, t)
		}
	}
	pointers := len(k.In) + len(k.Out)
	if b.completion != nil {
		k.Scratch = b.completion.scratch()
	}
	if len(k.Sums) > 0 || k.Scratch > 0 {
		pointers++
	}
	k.Launches = []Launch{{Function: "region", Blocks: blocks, Threads: threads}}
	for i := range pointers {
		k.Launches[0].Arguments = append(k.Launches[0].Arguments, i)
	}
	k.name()
	return k
}

// name gives the functions names of their own, by which a profiler tells the programs apart.
func (k *Kernel) name() {
	sum := sha256.Sum256([]byte(k.Source))
	for i := range k.Launches {
		own := fmt.Sprintf("%s_%x", k.Launches[i].Function, sum[:4])
		k.Source = strings.Replace(k.Source, " "+k.Launches[i].Function+"(", " "+own+"(", 1)
		k.Launches[i].Function = own
	}
}

// axes declares the axes of a place, of which index is the number among all places of these axes.
func (w *writer) axes(s shape, axes []int, index string) {
	step := 1
	for i := len(axes) - 1; i >= 0; i-- {
		a := axes[i]
		code := index
		if step > 1 {
			code = fmt.Sprintf("%s / %d", code, step)
		}
		if i > 0 {
			code = fmt.Sprintf("%s %% %d", code, s.sizes[a])
		}
		w.line("const int %s = %s;", axisName(a), code)
		step *= s.sizes[a]
	}
}

// divisions declares the quotients and rests that depend on the column, or those that do not.
func (w *writer) divisions(b *body, vary bool) {
	for _, q := range b.places.divisions {
		if b.varies(q.value) != vary {
			continue
		}
		w.division(q)
	}
}

func (w *writer) division(q division) {
	operator := "/"
	if q.rest {
		operator = "%"
	}
	w.line("const int %s = (%s) %s %d;", q.name, q.value, operator, q.divisor)
}

// vectors writes the statements of a phase for the elements of one vector, which begins at column c0 and at element
// base of the arrays.
func (w *writer) vectors(b *body, p *phase, base string) {
	s := b.shape
	for _, a := range slices.Concat(p.loads, p.stores) {
		if a.index == "jj" {
			w.line("%s %s[%d];", a.held, a.array, s.V)
		}
	}
	if len(p.loads) > 0 {
		w.line("{")
		w.line("const int c = c0;")
		w.axes(s, s.cols, "c")
		w.divisions(b, true)
		for _, a := range p.loads {
			w.load(a, s.V, base)
		}
		w.line("}")
	}
	if len(p.elements) > 0 {
		w.line("#pragma unroll")
		w.line("for (int jj = 0; jj < %d; jj++) {", s.V)
		w.line("const int c = c0 + jj, j = %s + jj;", base)
		w.axes(s, s.cols, "c")
		w.divisions(b, true)
		for _, statement := range p.elements {
			w.line("%s", statement)
		}
		w.line("}")
	}
	if len(p.stores) > 0 {
		w.line("{")
		w.line("const int c = c0;")
		w.axes(s, s.cols, "c")
		w.divisions(b, true)
		for _, a := range p.stores {
			w.line("if (%s) {", a.condition)
			w.writeVector(a, s.V)
			w.line("}")
		}
		w.line("}")
	}
}

// readVector reads a vector. Numbers in bf16 are read as words of two: elements of 16 bits would take an instruction
// more for every second one.
func (w *writer) readVector(a access, v int, index string) {
	if a.stored == "bf16" && v%2 == 0 {
		w.line("const vec<unsigned, %d> v = *(const vec<unsigned, %d> *)(%s + (%s));", v/2, v/2, a.pointer, a.at)
		w.line("#pragma unroll")
		w.line("for (int jj = 0; jj < %d; jj++) %s[%s] = jj %% 2 ? high_of(v.at[jj / 2]) : low_of(v.at[jj / 2]);", v,
			a.array, index)
		return
	}
	w.line("const vec<%s, %d> v = *(const vec<%s, %d> *)(%s + (%s));", a.stored, v, a.stored, v, a.pointer, a.at)
	w.line("#pragma unroll")
	w.line("for (int jj = 0; jj < %d; jj++) %s[%s] = v.at[jj];", v, a.array, index)
}

// writeVector writes a vector. Numbers in bf16 are rounded in pairs, by one instruction for two.
func (w *writer) writeVector(a access, v int) {
	if a.stored == "bf16" && v%2 == 0 {
		w.line("vec<unsigned, %d> v;", v/2)
		w.line("#pragma unroll")
		w.line("for (int jj = 0; jj < %d; jj += 2) v.at[jj / 2] = pair_of(%s[jj], %s[jj + 1]);", v, a.array, a.array)
		w.line("*(vec<unsigned, %d> *)(%s + (%s)) = v;", v/2, a.pointer, a.at)
		return
	}
	w.line("vec<%s, %d> v;", a.stored, v)
	w.line("#pragma unroll")
	w.line("for (int jj = 0; jj < %d; jj++) v.at[jj] = %s;", v, inMemory(a.stored, a.array+"[jj]"))
	w.line("*(vec<%s, %d> *)(%s + (%s)) = v;", a.stored, v, a.pointer, a.at)
}

func (w *writer) load(a access, v int, base string) {
	index := "jj"
	if a.index == "j" {
		index = base + " + jj"
	}
	if a.condition != "" {
		w.line("if (%s) {", a.condition)
	} else {
		w.line("{")
	}
	w.readVector(a, v, index)
	w.line("}")
	if a.condition != "" {
		w.line("else {")
		w.line("#pragma unroll")
		w.line("for (int jj = 0; jj < %d; jj++) %s[%s] = (%s)%s;", v, a.array, index, a.held, a.fill)
		w.line("}")
	}
}
