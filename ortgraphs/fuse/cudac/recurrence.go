package cudac

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

//go:embed recurrence.cuh
var recurrenceTemplates string

// Limits of a recurrence's kernel.
const (
	recurrenceThreads = 256 // RECURRENCE_THREADS
	counterFloats     = 32  // of the scratch memory, for the counter of arrivals: a cache line of its own
)

// recurrenceKernel is a kernel of all steps of some Scans in the making. Each has blocks of its own.
type recurrenceKernel struct {
	region *fuse.Region
	list   []*recurrence
	blocks int // of each
	room   int // floats of shared memory that a block may have
	shared int // those that it has
	floats int // of the scratch memory
	inputs []*fuse.Tensor
}

// recurrence is a Scan of the kernel. A step has levels, between which the blocks wait for each other: a product reads
// whole rows of what all blocks have computed.
type recurrence struct {
	*recurrenceKernel
	of      *fuse.Recurrence
	node    *fuse.Node
	rows    int
	levels  []*level
	at      map[*fuse.Tensor]int // the level of a tensor of the step
	alone   bool                 // each thread reads only what it has passed on itself: no step waits for others
	counter int                  // where the scratch memory has the counter of arrivals
	// operands are what products read of the step's own tensors.
	operands []*fuse.Tensor
	scratch  map[*fuse.Tensor]int // where the two copies of an operand, or of a passed value, begin
}

// generateRecurrences writes the program of a region whose recurrences one kernel computes.
func generateRecurrences(r *fuse.Region, of *fuse.RecurrenceKernel, target Target) (*Kernel, error) {
	blocks, shared, err := target.cooperative()
	if err != nil {
		return nil, err
	}
	if blocks < len(r.Nodes) {
		return nil, unsupported("each of them needs a block, and only %d run at the same time on this GPU", blocks)
	}
	each := max(1, blocks/cmp.Or(of.Parts, len(r.Nodes)))
	all, err := planRecurrenceKernel(r, of, each, shared)
	for err != nil && each > 1 { // with one column of a product, a block has more rows in shared memory at a time
		each /= 2
		all, err = planRecurrenceKernel(r, of, each, shared)
	}
	if err != nil {
		return nil, err
	}
	if busy := all.busy(); busy < all.blocks { // the others would only take part in meetings
		if all, err = planRecurrenceKernel(r, of, busy, shared); err != nil {
			return nil, err
		}
	}
	return all.write()
}

// planRecurrenceKernel divides each of the recurrences among so many blocks, with so many bytes of shared memory.
func planRecurrenceKernel(r *fuse.Region, of *fuse.RecurrenceKernel, blocks, shared int) (*recurrenceKernel, error) {
	all := &recurrenceKernel{region: r, blocks: blocks, room: shared / 4, floats: counterFloats * len(r.Nodes)}
	for i, n := range r.Nodes {
		k := &recurrence{
			recurrenceKernel: all, of: of.Of[n], node: n, at: map[*fuse.Tensor]int{}, counter: counterFloats * i,
			scratch: map[*fuse.Tensor]int{},
		}
		if err := k.plan(); err != nil {
			return nil, err
		}
		all.list = append(all.list, k)
	}
	return all, nil
}

// busy is how many blocks of a recurrence have units.
func (all *recurrenceKernel) busy() (blocks int) {
	for _, k := range all.list {
		for _, l := range k.levels {
			blocks = max(blocks, ceil(l.width, l.units))
		}
	}
	return blocks
}

// plan divides the step into levels, and gives the values that are passed on and the operands places in memory.
func (k *recurrence) plan() error {
	step := k.of.Step
	for _, n := range step.Nodes {
		level := 0
		for i, o := range n.In {
			at := k.at[o.Tensor]
			if n.Kind == fuse.Product && i == 0 && o.Tensor.From != nil {
				at++
			}
			level = max(level, at)
		}
		k.at[n.Out[0]] = level
		if a := n.In[0].Tensor; n.Kind == fuse.Product && a.From != nil && !slices.Contains(k.operands, a) {
			k.operands = append(k.operands, a)
		}
	}
	for i := range k.of.Carries {
		k.place(step.Inputs[i])
	}
	for _, t := range k.operands {
		k.place(t)
	}
	for _, t := range k.written() {
		if t.Elements() == 0 || !isFloat(t.Type) || len(t.Shape) == 0 {
			return unsupported("a step computes %s of type %s and shape %v", t.Name, t.Type, t.Shape)
		}
		rows := t.Elements() / t.Shape[len(t.Shape)-1]
		if k.rows != 0 && rows != k.rows {
			return unsupported("%s has %d rows, others have %d", t.Name, rows, k.rows)
		}
		k.rows = rows
	}
	for at := 0; at <= slices.Max(levelsOf(k.at, k.written())); at++ {
		l, err := k.newLevel(at)
		if err != nil {
			return err
		}
		k.levels = append(k.levels, l)
	}
	return k.divide()
}

func levelsOf(at map[*fuse.Tensor]int, list []*fuse.Tensor) (levels []int) {
	for _, t := range list {
		levels = append(levels, at[t])
	}
	return levels
}

// place gives a tensor two copies in the scratch memory: a step writes one while another block may still read the
// other.
func (k *recurrence) place(t *fuse.Tensor) {
	k.scratch[t] = k.floats
	k.floats += 2 * ceil(t.Elements(), 4) * 4
}

// written are the step's tensors that a kernel writes to memory.
func (k *recurrence) written() (list []*fuse.Tensor) {
	for i, o := range k.of.Step.Outputs {
		if i < k.of.Carries || slices.Contains(k.region.Out, k.node.Out[i]) {
			list = append(list, o.Tensor)
		}
	}
	return append(list, k.operands...)
}

// divide divides shared memory: weights that have no room there are read from the scratch memory.
func (k *recurrence) divide() error {
	weights, sums, rows := 0, 0, 0
	for _, l := range k.levels {
		own := 0
		for _, p := range l.products {
			own += p.sumFloats(k.rows)
			rows = max(rows, p.tile[0]*p.inner)
		}
		sums = max(sums, own)
	}
	left := k.room - sums - rows
	if left < 0 {
		return unsupported("its rows need %d bytes of shared memory", 4*(rows+sums))
	}
	for _, l := range k.levels {
		for _, p := range l.products {
			if size := p.columns * p.inner; size <= left {
				p.resident, p.weights = true, weights
				weights += size
				left -= size
			} else {
				p.weights = k.floats
				k.floats += size * k.blocks
			}
		}
	}
	k.shared = max(k.shared, weights)
	for _, l := range k.levels {
		at := weights
		for _, p := range l.products {
			p.sums = at
			at += p.sumFloats(k.rows)
		}
		for _, p := range l.products { // as many rows at a time as there is room for
			for p.chunk = p.bandRows(k.rows); p.chunk > p.tile[0] && p.chunk*p.inner > left+rows; p.chunk -= p.tile[0] {
			}
			p.staged = weights + sums
			k.shared = max(k.shared, p.staged+p.chunk*p.inner)
		}
	}
	return nil
}

// input returns the name of a region's input.
func (k *recurrence) input(i int) string {
	t := k.node.In[i].Tensor
	at := slices.Index(k.inputs, t)
	if at < 0 {
		at = len(k.inputs)
		k.recurrenceKernel.inputs = append(k.inputs, t)
	}
	return fmt.Sprintf("p%d", at)
}

// item is the number of a step's item of a sequence.
func (k *recurrence) item(backwards bool) affine {
	if backwards {
		return variable("step", -1).plusConstant(k.of.Steps - 1)
	}
	return variable("step", 1)
}

// places returns those over variables with so many values each, and over the steps.
func (k *recurrence) places(limits map[string]int) *places {
	p := newPlaces(nil)
	p.limits["step"] = k.of.Steps
	maps.Copy(p.limits, limits)
	return p
}

// given returns the code of an element of one of the step's inputs, as the memory of the region has it.
func (k *recurrence) given(p *places, i int, index []affine) string {
	o := k.node.In[i]
	if sequence := i - k.of.Carries; sequence >= 0 && sequence < k.of.Sequences {
		index = append([]affine{k.item(k.of.Backwards[sequence])}, index...)
	}
	code := fmt.Sprintf("%s[%s]", k.input(i), p.element(index, o))
	if isShort(o.Tensor.Type) {
		code = "float(" + code + ")"
	}
	return code
}

// copyOf is one of the two copies of a tensor in the scratch memory: that which this step reads, or writes.
func (k *recurrence) copyOf(t *fuse.Tensor, written bool) string {
	now := "step % 2"
	if written {
		now = "(step + 1) % 2"
	}
	return fmt.Sprintf("scratch + %d + %s * %d", k.scratch[t], now, ceil(t.Elements(), 4)*4)
}

func (all *recurrenceKernel) write() (*Kernel, error) {
	body := &writer{depth: 1}
	for i, k := range all.list {
		body.line("if (blockIdx.x / %d == %d) {", all.blocks, i)
		if err := k.body(body); err != nil {
			return nil, err
		}
		body.line("}")
	}
	w := &writer{}
	var parameters []string
	for i, t := range all.inputs {
		parameters = append(parameters, fmt.Sprintf("const %s *__restrict__ p%d", stored(t.Type), i))
	}
	for i, t := range all.region.Out {
		parameters = append(parameters, fmt.Sprintf("%s *__restrict__ o%d", stored(t.Type), i))
	}
	w.WriteString(preciseTemplates + recurrenceTemplates)
	w.line(`extern "C" __global__ void __launch_bounds__(32) nobody_has_arrived(float *scratch) {`)
	w.line("if (threadIdx.x < %d) ((unsigned *)scratch)[threadIdx.x * %d] = 0;", len(all.list), counterFloats)
	w.line("}")
	w.line(`extern "C" __global__ void __launch_bounds__(%d, 2) recurrence(%s) {`, recurrenceThreads,
		strings.Join(append(parameters, "float *scratch"), ", "))
	w.line("float *const memory = shared_floats();")
	w.line("const int block = blockIdx.x %% %d;", all.blocks)
	w.WriteString(body.String())
	w.line("}")
	w.endPrecise()
	out := &Kernel{Source: w.String(), In: all.inputs, Out: all.region.Out, Scratch: 4 * all.floats}
	out.Meets = slices.ContainsFunc(all.list, func(k *recurrence) bool { return !k.alone })
	scratch := len(all.inputs) + len(all.region.Out)
	main := Launch{
		Function: "recurrence", Blocks: [2]int{all.blocks * len(all.list), 1}, Threads: recurrenceThreads,
		Shared: 4 * all.shared, Cooperative: true,
	}
	for i := range scratch + 1 {
		main.Arguments = append(main.Arguments, i)
	}
	out.Launches = []Launch{
		{Function: "nobody_has_arrived", Blocks: [2]int{1, 1}, Threads: 32, Arguments: []int{scratch}}, main,
	}
	out.name()
	return out, nil
}

// body writes what comes before the steps, and the steps.
func (k *recurrence) body(w *writer) error {
	k.alone = len(k.levels) == 1 && !k.meets()
	steps := &writer{depth: w.depth}
	if k.alone { // what later steps are given is read ahead
		steps.line("#pragma unroll 4")
	}
	steps.line("for (int step = 0; step < %d; step++) {", k.of.Steps)
	for i, l := range k.levels {
		if err := k.writeLevel(steps, l); err != nil {
			return err
		}
		if i+1 < len(k.levels) {
			steps.line("meet_blocks(arrived, target, %d);", k.blocks)
		}
	}
	if k.meets() {
		steps.line("meet_blocks(arrived, target, %d);", k.blocks)
	}
	steps.line("}")

	w.line("unsigned *const arrived = (unsigned *)scratch + %d;", k.counter)
	w.line("unsigned target = 0;")
	for i := range k.of.Carries {
		t := k.of.Step.Inputs[i]
		p := k.places(map[string]int{"i": t.Elements()})
		code := k.given(p, i, p.unflatten(variable("i", 1), t.Shape))
		w.line("for (int i = block * %d + threadIdx.x; i < %d; i += %d) {", recurrenceThreads, t.Elements(),
			recurrenceThreads*k.blocks)
		w.define(p)
		w.line("scratch[%d + i] = %s;", k.scratch[t], code)
		w.line("}")
	}
	for _, l := range k.levels {
		for _, p := range l.products {
			p.load(w)
		}
	}
	w.line("meet_blocks(arrived, target, %d);", k.blocks)
	w.WriteString(steps.String())
	return nil
}
