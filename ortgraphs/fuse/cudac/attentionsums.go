package cudac

import (
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// resultSums are the column sums that the kernels of a gradient leave as partial sums.
type resultSums struct {
	of     []string // by result, an expression of the type column_sums or no_sums of attentionshared.cuh
	sums   []Sum
	length int // of all partial sums
}

// pointer is a parameter of a function after those of inputs and outputs. at is its place in the list of arguments,
// counted from the last output: the partial sums come first, if the kernel has any, and then the scratch memory.
type pointer struct {
	parameter string
	at        int
}

// pointers are those of a function that computes some of the results. The scratch memory has an element of a type for
// each row.
func (s *resultSums) pointers(perRow string, results ...int) (list []pointer) {
	scratch := 0
	if len(s.sums) > 0 {
		scratch = 1
	}
	if slices.ContainsFunc(results, func(i int) bool { return s.of[i] != noSums }) {
		list = append(list, pointer{"float *__restrict__ partials", 0})
	}
	return append(list, pointer{perRow + " *__restrict__ rows", scratch})
}

const noSums = "no_sums()"

// newResultSums returns the sums of results that are in these spans, of which so many blocks compute a matrix.
func newResultSums(a *attention, spans []span, blocks func(result int) int) (*resultSums, error) {
	all := &resultSums{of: slices.Repeat([]string{noSums}, len(spans))}
	for _, s := range a.Backward.ColumnSums {
		matrices, perMatrix, numbered := 0, 0, "" // perMatrix: blocks that compute a matrix
		for i, r := range a.Results {
			if r.Out != s.Of {
				continue
			}
			if n := blocks(i); perMatrix == 0 || perMatrix == n {
				perMatrix = n
			} else {
				return nil, unsupported("the matrices in %s have different lengths", s.Of.Name)
			}
			row, column, err := divideColumns(a, spans[i], s)
			if err != nil {
				return nil, err
			}
			if numbered != "" && numbered != row.String() {
				return nil, unsupported("the matrices in %s have different orders", s.Of.Name)
			}
			numbered = row.String()
			number, count := a.places.dense(row)
			matrices = count
			first := number.times(perMatrix * s.Columns).plus(column).plusConstant(all.length)
			all.of[i] = fmt.Sprintf("column_sums{partials + (%s), %d}", first, s.Columns)
		}
		sum := Sum{Out: s.Out, Op: "sum", Partials: matrices * perMatrix, Columns: s.Columns, First: all.length}
		all.sums = append(all.sums, sum)
		all.length += sum.Partials * sum.Columns
	}
	return all, nil
}

// blocksOfResult is the number of blocks that compute a matrix of a result.
func (a *attention) blocksOfResult(i int) int {
	if i == 0 {
		return ceil(a.rows, 64)
	}
	return ceil(a.columns, 64)
}

// divideColumns returns where a matrix begins as a number of rows of all columns, and the first of its columns in each
// row.
func divideColumns(a *attention, s span, sum fuse.ColumnSum) (row, column affine, err error) {
	row, column = s.first.dividedBy(sum.Columns)
	least, most := a.places.bounds(column)
	if s.row%sum.Columns != 0 || least < 0 || most+s.columns*(a.head-1) >= sum.Columns {
		return row, column, unsupported("the columns of %s are not the same in each row", sum.Of.Name)
	}
	return row, column, nil
}

// dense numbers the values of a sum of variables without gaps. It returns the number and how many there are.
func (p *places) dense(e affine) (number affine, count int) {
	count = 1
	for _, name := range slices.Sorted(maps.Keys(e.factors)) {
		number = number.plus(variable(name, count))
		count *= p.limits[name]
	}
	return number, count
}
