package cudac

import (
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// The sizes of warpgroups.cuh and attentionblock.cuh, in bytes.
const (
	gradientThreads = 512
	tilesFrom       = 1 << 10 // shared memory begins at a multiple of it, which may take as much
	tileColumns     = 64
	tileBytes       = 8 << 10 // 64 rows
	sliceBytes      = 4 << 10 // the sums of 16 rows of dQ
	stateBytes      = 3 << 10 // what else a block has, without terms
	termBytes       = 128 * 8 // a term of 128 queries
	// sharedLimit is the shared memory that compute capability 9.0 has for a block.
	sharedLimit = 227 << 10
)

// copiesInBlock is how many copies of the gradients of scores fit into the shared memory of a block that computes all
// gradients of a head, two or one. 0 means that two functions compute them.
func (g *gradients) copiesInBlock(target Target) int {
	inRows := g.result != nil && !slices.ContainsFunc(g.spans, func(s span) bool { return s.columns != 1 })
	same := strings.ReplaceAll(strings.Join(g.queries, ""), "of_queries", "of_keys") == strings.Join(g.keys, "")
	if !target.Warpgroups || g.head != tileColumns || !inRows || !same ||
		!g.fillsMultiprocessors(target.Count) {
		return 0
	}
	for copies := 2; copies > 0; copies-- {
		if g.sharedMemory(copies)+stateBytes+termBytes*len(g.termLists.query.fields) <= sharedLimit {
			return copies
		}
	}
	return 0
}

// fillsMultiprocessors reports whether one block for each head is faster than the two functions. If all multiprocessors
// have a block, these take six tenths of the time. But a multiprocessor has one at a time. So at least two thirds of
// the places must be taken, in as many rounds as it takes.
func (g *gradients) fillsMultiprocessors(multiprocessors int) bool {
	rounds := ceil(g.batch, multiprocessors)
	return 3*g.batch >= 2*rounds*multiprocessors
}

// sharedMemory is what a launch asks for. Warps of the last tile that have no slice have room for 16 rows in bf16.
func (g *gradients) sharedMemory(copies int) int {
	taken := ceil(g.rows, 16)
	free := 4*ceil(taken, 4) - taken
	return tilesFrom + (8+2*copies)*tileBytes + taken*sliceBytes + free*sliceBytes/2
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
	g.begin(w, "gradients", gradientThreads, 1, []string{"const int batch = blockIdx.x;"},
		slices.Concat(g.score, g.weight, g.keys), g.out, pointers)
	var first, steps []string
	for _, m := range slices.Concat(g.operands, []matrix{*g.result}) {
		first, steps = append(first, m.first), append(steps, m.step)
	}
	w.line("auto matrices_of = [&](int batch) -> head_matrices {")
	g.indices(w)
	w.line("return {%s};", strings.Join(first, ", "))
	w.line("};")
	w.line("attend_gradients<squares<%d, %d, %d, %t, %d>>(batch, %d, matrices_of, {%s}, %s, of_query, of_key, score, "+
		"is_plain, weight, of_keys, %s, %s, %s, %s, %s, %s, %s, %s, %s);",
		g.rows, g.columns, fuse.ReachWidth(g.columns), g.vanishes(), copies, g.batch, strings.Join(steps, ", "),
		g.statistics, g.scaleQueries, g.to(g.Results[0], g.spans[0]), sums.of[0], g.scaleKeys,
		g.to(g.Results[1], g.spans[1]), sums.of[1], g.to(g.Results[2], g.spans[2]), sums.of[2],
		g.perRow(perRow, "rows"))
	w.line("}")
	l := g.launch("gradients", gradientThreads, 1, g.out, pointers)
	l.Shared = g.sharedMemory(copies)
	return g.complete(attentionShared+warpgroups+attentionBlock, w, sums, l), nil
}
