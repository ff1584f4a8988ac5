package cudac

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// gradients is what the programs of a gradient of attention have in common.
type gradients struct {
	*attention
	operands []matrix // queries, keys, values, and the gradient of the result
	result   *matrix  // nil if it is not written in rows
	spans    []span   // of the results
	// The functions that attentionbackward.cuh and attentionblock.cuh call. queries and keys return the gradient of a
	// product, which is to be scaled for the result.
	score, weight, summed, queries, keys []string
	scaleQueries, scaleKeys              string
	statistics                           string // what the forward pass has left of each row
}

func (a *attention) backward(target Target) (*Kernel, error) {
	g := &gradients{attention: a}
	for _, f := range []func() error{g.findMatrices, g.writeFunctions} {
		if err := f(); err != nil {
			return nil, err
		}
	}
	if copies := g.copiesInBlock(target); copies > 0 {
		return g.oneBlock(copies)
	}
	return g.twoFunctions()
}

func (g *gradients) findMatrices() (err error) {
	if g.operands, err = g.matrices(g.Query, g.Key, g.Value, g.Gradient); err != nil {
		return err
	}
	for _, r := range g.Results {
		s, err := g.attention.result(r)
		if err != nil {
			return err
		}
		g.spans = append(g.spans, s)
	}
	if o, rows := g.rowsOf(g.Backward.Result); rows {
		m := matrixAt(g.input(g.Backward.Result.Out), o)
		g.result = &m
	}
	g.statistics = strings.Join([]string{
		g.perRow("float", g.input(g.Most)), g.perRow("float", g.input(g.Total)), g.perRow("int", g.input(g.Reach)),
	}, ", ")
	return nil
}

func (g *gradients) writeFunctions() (err error) {
	b := g.Backward
	x, p, dp, sum := place{g.Product, "x"}, place{g.Softmax, "p"}, place{b.Product, "dp"}, place{b.Sum, "sum"}
	queries, ofQueries := scaled(b.Queries)
	keys, ofKeys := scaled(b.Keys)
	for _, f := range []struct {
		code   *[]string
		name   string
		tensor *fuse.Tensor
		of     []place
	}{
		{&g.weight, "weight", g.Weights, []place{p}}, {&g.summed, "summed", b.Summed, []place{x, p, dp}},
		{&g.queries, "of_queries", queries, []place{x, p, dp, sum}}, {&g.keys, "of_keys", keys, []place{x, p, dp, sum}},
	} {
		if *f.code, err = g.function(f.name, f.tensor, f.of...); err != nil {
			return err
		}
	}
	g.scaleQueries = literal(ofQueries*g.Results[0].Scale, onnxpb.TensorProto_FLOAT)
	g.scaleKeys = literal(ofKeys*g.Results[1].Scale, onnxpb.TensorProto_FLOAT)
	g.score, err = g.scoreFunction()
	return err
}

// rowsOf returns where a result is, if there is one and it is written in rows.
func (g *gradients) rowsOf(r *fuse.Result) (span, bool) {
	if r == nil {
		return span{}, false
	}
	before := g.places
	g.places = before.clone()
	s, err := g.attention.result(*r)
	if err != nil || s.columns != 1 {
		g.places = before
		return span{}, false
	}
	return s, true
}

// twoFunctions writes one function for dQ, and one for dK and dV. Both compute the scores.
func (g *gradients) twoFunctions() (*Kernel, error) {
	sums, err := newResultSums(g.attention, g.spans, g.blocksOfResult)
	if err != nil {
		return nil, err
	}
	const perRow = "row_values"
	result := "(const bf16 *)0, 0"
	if g.result != nil {
		result = g.result.String()
	}
	m := g.operands
	operands := fmt.Sprintf("%s, %s, %s, %s", m[0], m[1], m[2], m[3])
	outQueries, outKeys := []*fuse.Tensor{g.Results[0].Out},
		slices.Compact([]*fuse.Tensor{g.Results[1].Out, g.Results[2].Out})
	forQueries, forKeys := sums.pointers(perRow, 0), sums.pointers(perRow, 1, 2)
	width, vanishes, rows := fuse.ReachWidth(g.columns), g.vanishes(), g.perRow(perRow, "rows")
	w := &writer{}
	g.begin(w, "queries", attentionThreads, blocksPerProcessor(g.attention, 4),
		numberBlocks(g.batch, g.blocksOfResult(0), readTogether(g.columns, g.head), lastFirst),
		slices.Concat(g.score, g.summed, g.queries), outQueries, forQueries)
	w.line("attend_queries<%d, %d, %d, %d, %d, %t, %t>(part, %s, %s, %s, of_query, of_key, score, is_plain, summed, "+
		"of_queries, %s, %s, %s, %s);",
		g.head, g.rows, g.columns, g.spans[0].columns, width, g.result != nil, vanishes, operands, result, g.statistics,
		g.scaleQueries, g.to(g.Results[0], g.spans[0]), sums.of[0], rows)
	w.line("}")
	g.begin(w, "keys", attentionThreads, blocksPerProcessor(g.attention, 3),
		numberBlocks(g.batch, g.blocksOfResult(1), g.batch, firstFirst), slices.Concat(g.score, g.weight, g.keys),
		outKeys, forKeys)
	w.line("attend_keys<%d, %d, %d, %d, %d, %d, %t>(part, %s, %s, of_query, of_key, score, is_plain, weight, of_keys, "+
		"%s, %s, %s, %s, %s);",
		g.head, g.rows, g.columns, g.spans[1].columns, g.spans[2].columns, width, vanishes, operands, rows, g.scaleKeys,
		g.to(g.Results[1], g.spans[1]), sums.of[1], g.to(g.Results[2], g.spans[2]), sums.of[2])
	w.line("}")
	return g.complete(attentionShared+attentionBackward, w, sums,
			g.launch("queries", attentionThreads, g.blocksOfResult(0), outQueries, forQueries),
			g.launch("keys", attentionThreads, g.blocksOfResult(1), outKeys, forKeys)),
		nil
}

// complete makes the kernel of a program whose scratch memory has 16 bytes for each row.
func (g *gradients) complete(templates string, w *writer, sums *resultSums, launches ...Launch) *Kernel {
	k := g.kernel(templates, w)
	k.Scratch = 16 * g.batch * g.rows
	k.Sums, k.PartialsLength = sums.sums, sums.length
	k.Launches = launches
	return k
}
