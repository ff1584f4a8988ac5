package cudac

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

var (
	//go:embed attention.cuh
	attentionPrelude string
	//go:embed attentionforward.cuh
	attentionForward string
	//go:embed attentiongroup.cuh
	attentionGroup string
	//go:embed attentionshared.cuh
	attentionShared string
	//go:embed attentionbackward.cuh
	attentionBackward string
	//go:embed warpgroups.cuh
	warpgroups string
	//go:embed attentionblock.cuh
	attentionBlock string
)

// attention is the program of an attention region. Its kernels are templates of attention.cuh; the functions written
// here are what the graph computes at each place: scores, weights and gradients.
type attention struct {
	region *fuse.Region
	*fuse.Attention
	places *places
	place  []affine // of the matrix of scores: the batch, the query, the key
	inputs []*fuse.Tensor
	out    []*fuse.Tensor // the outputs but the sums of columns
	inside map[*fuse.Node]bool

	termLists termLists

	rows, columns, batch, head int
}

const attentionThreads = 128

// blocksPerProcessor is the number of blocks that a multiprocessor is to compute at a time, at most so many. Four hide
// latencies better than three, if registers suffice (docs/results/history-fusion.md has the times): not for wide
// matrices, and not if a thread keeps several terms of each key.
func blocksPerProcessor(a *attention, limit int) int {
	switch {
	case a.head > 64:
		return 2
	case len(a.termLists.key.fields) > 1:
		return min(3, limit)
	}
	return limit
}

func generateAttention(r *fuse.Region, of *fuse.Attention, target Target) (*Kernel, error) {
	a := newAttention(r, of)
	write := func() (*Kernel, error) { return a.forward(target) }
	if a.Backward != nil {
		write = func() (*Kernel, error) { return a.backward(target) }
	}
	k, err := write()
	if err == nil {
		err = a.termLists.fit()
	}
	if err != nil {
		return nil, err
	}
	k.name()
	return k, nil
}

func newAttention(r *fuse.Region, of *fuse.Attention) *attention {
	shape := of.Product.Shape
	rank := len(shape)
	a := &attention{region: r, Attention: of, places: newPlaces(shape), inside: map[*fuse.Node]bool{},
		rows: shape[rank-2], columns: shape[rank-1], batch: 1}
	a.termLists = newTermLists(a)
	for i, d := range shape {
		a.place = append(a.place, variable(axisName(i), 1))
		if d == 1 {
			a.place[i] = affine{}
		}
		if i < rank-2 {
			a.batch *= d
		}
	}
	for _, n := range r.Nodes {
		a.inside[n] = true
	}
	for _, t := range r.Out {
		if a.Backward == nil ||
			!slices.ContainsFunc(a.Backward.ColumnSums, func(s fuse.ColumnSum) bool { return s.Out == t }) {
			a.out = append(a.out, t)
		}
	}
	key := a.Key.Shape()
	a.head = key[len(key)-1]
	if a.Key.Turned {
		a.head = key[len(key)-2]
	}
	return a
}

// input returns the name of a pointer argument.
func (a *attention) input(t *fuse.Tensor) string {
	i := slices.Index(a.inputs, t)
	if i < 0 {
		i = len(a.inputs)
		a.inputs = append(a.inputs, t)
	}
	return fmt.Sprintf("p%d", i)
}

// output returns the name of an argument, which is "0" for a tensor that no one reads.
func (a *attention) output(t *fuse.Tensor) string {
	if i := slices.Index(a.out, t); i >= 0 {
		return fmt.Sprintf("o%d", i)
	}
	return "0"
}

func (a *attention) forward(target Target) (*Kernel, error) {
	operands, err := a.matrices(a.Query, a.Key, a.Value)
	if err != nil {
		return nil, err
	}
	o, err := a.result(a.Results[0])
	if err != nil {
		return nil, err
	}
	score, err := a.scoreFunction()
	if err != nil {
		return nil, err
	}
	weight, err := a.function("weight", a.Weights, place{a.Softmax, "p"})
	if err != nil {
		return nil, err
	}
	w := &writer{}
	parts := a.blocksOfResult(0)
	numbered := numberBlocks(a.batch, parts, readTogether(a.columns, a.head), lastFirst)
	a.begin(w, "attention", attentionThreads, blocksPerProcessor(a, 4), numbered, slices.Concat(score, weight), a.out,
		nil)
	templates, products, shared := attentionForward,
		fmt.Sprintf("products_of_warps<%d, %d, %d>", a.head, a.rows, a.columns), 0
	if target.Warpgroups && a.head == tileColumns && o.columns == 1 {
		templates, products = warpgroups+attentionForward+attentionGroup,
			fmt.Sprintf("products_of_group<%d, %d>", a.rows, a.columns)
		shared = tilesFrom + 5*tileBytes // queries, and two of keys and values each
	}
	w.line(
		"attend<%s, %d, %d, %d, %d, %d>(part, %s, %s, %s, of_query, of_key, score, is_plain, weight, %s, %s, %s, %s);",
		products, a.head, a.rows, a.columns, o.columns, fuse.ReachWidth(a.columns), operands[0], operands[1],
		operands[2], a.to(a.Results[0], o), a.perRow("float", a.output(a.Most)), a.perRow("float", a.output(a.Total)),
		a.perRow("int", a.output(a.Reach)))
	w.line("}")
	kernel := a.kernel(templates, w)
	l := a.launch("attention", attentionThreads, parts, a.out, nil)
	l.Shared = shared
	kernel.Launches = []Launch{l}
	return kernel, nil
}

// matrices returns where some matrices of the batch are.
func (a *attention) matrices(list ...*fuse.Matrix) ([]matrix, error) {
	var all []matrix
	for _, m := range list {
		at, err := a.matrix(m)
		if err != nil {
			return nil, err
		}
		all = append(all, at)
	}
	return all, nil
}

// begin begins a function: all inputs, some outputs and other pointers are its arguments. numbered are the lines that
// number the heads as batch. A multiprocessor has registers for so many blocks.
func (a *attention) begin(
	w *writer, name string, threads, blocks int, numbered, functions []string, out []*fuse.Tensor, others []pointer,
) {
	var parameters []string
	for i, t := range a.inputs {
		parameters = append(parameters, fmt.Sprintf("const %s *__restrict__ p%d", stored(t.Type), i))
	}
	for _, t := range out {
		parameters = append(parameters, fmt.Sprintf("%s *__restrict__ %s", stored(t.Type), a.output(t)))
	}
	for _, p := range others {
		parameters = append(parameters, p.parameter)
	}
	w.line("extern \"C\" __global__ void __launch_bounds__(%d, %d) %s(%s) {", threads, blocks, name,
		strings.Join(parameters, ", "))
	for _, line := range numbered {
		w.line("%s", line)
	}
	a.indices(w)
	rank := len(a.Product.Shape)
	for _, line := range append(a.termLists.lines(axisName(rank-2), axisName(rank-1)), functions...) {
		w.line("%s", line)
	}
}

// indices writes the indices of the head that batch numbers.
func (a *attention) indices(w *writer) {
	s := shape{sizes: a.Product.Shape}
	var batch []int
	for i := range len(s.sizes) - 2 {
		batch = append(batch, i)
	}
	w.axes(s, batch, "batch")
	for _, q := range a.places.divisions {
		if !a.varies(q.value) {
			w.division(q)
		}
	}
}

func (a *attention) kernel(templates string, w *writer) *Kernel {
	return &Kernel{Source: matrices + attentionPrelude + templates + w.String(), In: a.inputs, Out: a.out}
}

// launch starts a function with so many blocks for each matrix.
func (a *attention) launch(function string, threads, parts int, out []*fuse.Tensor, others []pointer) Launch {
	l := Launch{Function: function, Blocks: [2]int{a.batch * parts, 1}, Threads: threads}
	for i := range a.inputs {
		l.Arguments = append(l.Arguments, i)
	}
	for _, t := range out {
		l.Arguments = append(l.Arguments, len(a.inputs)+slices.Index(a.out, t))
	}
	for _, p := range others {
		l.Arguments = append(l.Arguments, len(a.inputs)+len(a.out)+p.at)
	}
	return l
}
