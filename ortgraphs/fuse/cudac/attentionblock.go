package cudac

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// The sizes of attentiongradients.cuh, in bytes: a tile of 64 rows, the sums of 16 rows of dQ, and what else a block has, of which terms take termBytes
// each for 128 queries.
const (
	gradientThreads = 512
	tileBytes       = 8 << 10
	sliceBytes      = 4 << 10
	stateBytes      = 3 << 10
	termBytes       = 128 * 8
	// sharedLimit is the shared memory that compute capability 9.0 has for a block.
	sharedLimit = 227 << 10
)

// copiesInBlock is how many copies of the gradients of scores fit into the shared memory of a block that computes all gradients of a head, two or
// one. 0 means that two functions compute them.
func (g *gradients) copiesInBlock(target Target) int {
	inRows := g.result != nil && !slices.ContainsFunc(g.spans, func(s span) bool { return s.columns != 1 })
	same := strings.ReplaceAll(strings.Join(g.queries, ""), "of_queries", "of_keys") == strings.Join(g.keys, "")
	if target.Multiprocessors == 0 || g.head != 64 || !inRows || !same || !g.keepBusy(target.Multiprocessors) {
		return 0
	}
	for copies := 2; copies > 0; copies-- {
		if g.sharedMemory(copies)+stateBytes+termBytes*len(g.termLists.query.fields) <= sharedLimit {
			return copies
		}
	}
	return 0
}

// keepBusy reports whether blocks that take a whole multiprocessor each are faster than the two functions, of which many run on one. On all
// multiprocessors at a time, they take six tenths of the time. So two thirds of the places are to be taken, in as many rounds as it takes.
func (g *gradients) keepBusy(multiprocessors int) bool {
	rounds := ceil(g.batch, multiprocessors)
	return 3*g.batch >= 2*rounds*multiprocessors
}

// sharedMemory is what a launch asks for. The tiles begin at a multiple of 1,024. Warps of the last tile without a slice have room for 16 rows in
// bf16.
func (g *gradients) sharedMemory(copies int) int {
	slices := ceil(g.rows, 16)
	return 1024 + (8+2*copies)*tileBytes + slices*sliceBytes + (4*ceil(slices, 4)-slices)*sliceBytes/2
}

// oneBlock writes a function whose blocks compute all gradients of a head.
func (g *gradients) oneBlock(copies int) (*Kernel, error) {
	sums, err := newResultSums(g.attention, g.spans, func(int) int { return 1 })
	if err != nil {
		return nil, err
	}
	const perRow = "query_values"
	pointers := sums.pointers(perRow, 0, 1, 2)
	w := &writer{}
	g.begin(w, "gradients", gradientThreads, 1, []string{"const int batch = blockIdx.x;"}, slices.Concat(g.score, g.weight, g.keys), g.out, pointers)
	var first, steps []string
	for _, m := range append(g.matrices[:], *g.result) {
		first, steps = append(first, m.first), append(steps, m.step)
	}
	w.line("auto matrices_of = [&](int batch) -> head_matrices {")
	g.indices(w)
	w.line("return {%s};", strings.Join(first, ", "))
	w.line("};")
	w.line("attend_gradients<squares<%d, %d, %d, %t, %d>>(batch, %d, matrices_of, {%s}, %s, of_query, of_key, score, is_plain, weight, of_keys, %s, %s, %s, %s, %s, %s, %s, %s, %s);",
		g.rows, g.columns, fuse.ReachWidth(g.columns), g.vanishes(), copies, g.batch, strings.Join(steps, ", "), g.statistics,
		g.scaleQueries, g.to(g.Results[0], g.spans[0]), sums.of[0], g.scaleKeys, g.to(g.Results[1], g.spans[1]), sums.of[1], g.to(g.Results[2], g.spans[2]), sums.of[2], g.perRow(perRow, "rows"))
	w.line("}")
	l := g.launch("gradients", gradientThreads, 1, g.out, pointers)
	l.Shared = g.sharedMemory(copies)
	return g.complete(attentionSums+warpgroups+attentionGradients, w, sums, l), nil
}
