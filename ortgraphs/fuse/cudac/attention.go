package cudac

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

//go:embed attention.cuh
var attentionPrelude string

// attention is the program of an attention region. Its kernels are templates of attention.cuh; the functions written here are what the
// graph computes at each place: scores, weights and gradients.
type attention struct {
	region *fuse.Region
	*fuse.Attention
	places *places
	place  []affine // of the matrix of scores: the batch, the query, the key
	inputs []*fuse.Tensor
	inside map[*fuse.Node]bool

	rows, columns, batch, head int
}

const (
	attentionRows    = 64 // of a block
	attentionThreads = 128
)

func generateAttention(r *fuse.Region) (*Kernel, error) {
	a := newAttention(r)
	write := a.forward
	if a.Backward != nil {
		write = a.backward
	}
	k, err := write()
	if err == nil {
		k.name()
	}
	return k, err
}

func newAttention(r *fuse.Region) *attention {
	shape := r.Attention.Product.Shape
	rank := len(shape)
	a := &attention{region: r, Attention: r.Attention, places: newPlaces(shape), inside: map[*fuse.Node]bool{}, rows: shape[rank-2], columns: shape[rank-1], batch: 1}
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
	if i := slices.Index(a.region.Out, t); i >= 0 {
		return fmt.Sprintf("o%d", i)
	}
	return "0"
}

func (a *attention) forward() (*Kernel, error) {
	q, k, v, err := a.operands()
	if err != nil {
		return nil, err
	}
	o, err := a.result(a.Results[0])
	if err != nil {
		return nil, err
	}
	score, err := a.function("score", a.Scores, place{a.Product, "x"})
	if err != nil {
		return nil, err
	}
	weight, err := a.function("weight", a.Weights, place{a.Softmax, "p"})
	if err != nil {
		return nil, err
	}
	w := &writer{}
	a.begin(w, "attention", slices.Concat(score, weight), a.region.Out, false)
	w.line("attend<%d, %d, %d, %d>(%s, %s, %s, score, weight, %s, %s, %s);", a.head, a.rows, a.columns, o.columns, q, k, v, a.to(a.Results[0], o),
		a.perRow(a.output(a.Most)), a.perRow(a.output(a.Total)))
	w.line("}")
	kernel := a.kernel(w)
	kernel.Launches = []Launch{a.launch("attention", a.rows, a.region.Out, false)}
	return kernel, nil
}

func (a *attention) operands() (q, k, v string, err error) {
	if q, err = a.matrix(a.Query); err == nil {
		if k, err = a.matrix(a.Key); err == nil {
			v, err = a.matrix(a.Value)
		}
	}
	return q, k, v, err
}

func (a *attention) backward() (*Kernel, error) {
	q, k, v, err := a.operands()
	if err != nil {
		return nil, err
	}
	grad, err := a.matrix(a.Gradient)
	if err != nil {
		return nil, err
	}
	var spans []span
	for _, r := range a.Results {
		s, err := a.result(r)
		if err != nil {
			return nil, err
		}
		spans = append(spans, s)
	}
	b := a.Backward
	result := "(const bf16 *)0, 0"
	o, rows := a.rowsOf(b.Result)
	if rows {
		result = fmt.Sprintf("%s + (%s), %d", a.input(b.Result.Out), o.first, o.row)
	}
	x, p, dp, sum := place{a.Product, "x"}, place{a.Softmax, "p"}, place{b.Product, "dp"}, place{b.Sum, "sum"}
	functions := map[string][]string{}
	for _, f := range []struct {
		name   string
		tensor *fuse.Tensor
		of     []place
	}{
		{"score", a.Scores, []place{x}}, {"weight", a.Weights, []place{p}}, {"summed", b.Summed, []place{x, p, dp}},
		{"of_queries", b.Queries, []place{x, p, dp, sum}}, {"of_keys", b.Keys, []place{x, p, dp, sum}},
	} {
		if functions[f.name], err = a.function(f.name, f.tensor, f.of...); err != nil {
			return nil, err
		}
	}
	most, total := a.perRow(a.input(a.Most)), a.perRow(a.input(a.Total))
	queries, keys := []*fuse.Tensor{a.Results[0].Out}, []*fuse.Tensor{a.Results[1].Out, a.Results[2].Out}
	w := &writer{}
	a.begin(w, "queries", slices.Concat(functions["score"], functions["summed"], functions["of_queries"]), queries, true)
	w.line("attend_queries<%d, %d, %d, %d, %t>(%s, %s, %s, %s, %s, %s, %s, score, summed, of_queries, %s, %s);", a.head, a.rows, a.columns, spans[0].columns,
		rows, q, k, v, grad, result, most, total, a.to(a.Results[0], spans[0]), a.perRow("sums"))
	w.line("}")
	a.begin(w, "keys", slices.Concat(functions["score"], functions["weight"], functions["of_keys"]), keys, true)
	w.line("attend_keys<%d, %d, %d, %d, %d>(%s, %s, %s, %s, %s, %s, %s, score, weight, of_keys, %s, %s);", a.head, a.rows, a.columns, spans[1].columns, spans[2].columns,
		q, k, v, grad, most, total, a.perRow("sums"), a.to(a.Results[1], spans[1]), a.to(a.Results[2], spans[2]))
	w.line("}")
	kernel := a.kernel(w)
	kernel.Scratch = 4 * a.batch * a.rows
	kernel.Launches = []Launch{a.launch("queries", a.rows, queries, true), a.launch("keys", a.columns, keys, true)}
	return kernel, nil
}

// rowsOf returns where a result is, if there is one and it is written in rows.
func (a *attention) rowsOf(r *fuse.Result) (span, bool) {
	if r == nil {
		return span{}, false
	}
	before := a.places
	a.places = before.clone()
	s, err := a.result(*r)
	if err != nil || s.columns != 1 {
		a.places = before
		return span{}, false
	}
	return s, true
}

// begin begins a function: all inputs, some outputs and, for the backward pass, the sums of rows are its arguments.
func (a *attention) begin(w *writer, name string, functions []string, out []*fuse.Tensor, sums bool) {
	var parameters []string
	for i, t := range a.inputs {
		parameters = append(parameters, fmt.Sprintf("const %s *__restrict__ p%d", stored(t.Type), i))
	}
	for _, t := range out {
		parameters = append(parameters, fmt.Sprintf("%s *__restrict__ %s", stored(t.Type), a.output(t)))
	}
	if sums {
		parameters = append(parameters, "float *__restrict__ sums")
	}
	w.line("extern \"C\" __global__ void __launch_bounds__(%d) %s(%s) {", attentionThreads, name, strings.Join(parameters, ", "))
	s := shape{sizes: a.Product.Shape}
	var batch []int
	for i := range len(s.sizes) - 2 {
		batch = append(batch, i)
	}
	w.line("const int batch = blockIdx.y;")
	w.axes(s, batch, "batch")
	for _, q := range a.places.parts {
		if !a.varies(q.value) {
			w.part(q)
		}
	}
	for _, line := range functions {
		w.line("%s", line)
	}
}

func (a *attention) kernel(w *writer) *Kernel {
	return &Kernel{Source: attentionPrelude + w.String(), In: a.inputs, Out: a.region.Out}
}

func (a *attention) launch(function string, positions int, out []*fuse.Tensor, sums bool) Launch {
	l := Launch{Function: function, Blocks: [2]int{ceil(positions, attentionRows), a.batch}, Threads: attentionThreads}
	for i := range a.inputs {
		l.Arguments = append(l.Arguments, i)
	}
	for _, t := range out {
		l.Arguments = append(l.Arguments, len(a.inputs)+slices.Index(a.region.Out, t))
	}
	if sums {
		l.Arguments = append(l.Arguments, len(a.inputs)+len(a.region.Out))
	}
	return l
}
