package cudac

import (
	"fmt"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// span is where a matrix is in memory: its first element, and the distances of rows and columns.
type span struct {
	first        affine
	row, columns int
}

// aligned reports whether each row begins at a multiple of 16 bytes.
func (s span) aligned() bool {
	aligned := s.row%8 == 0 && s.first.constant%8 == 0
	for _, factor := range s.first.factors {
		aligned = aligned && factor%8 == 0
	}
	return aligned
}

// matrix is where a matrix of the batch begins, and the distance of its rows, in code.
type matrix struct{ first, step string }

func (m matrix) String() string { return m.first + ", " + m.step }

// matrix returns where a matrix of the batch is.
func (a *attention) matrix(m *fuse.Matrix) (matrix, error) {
	shape := m.Shape()
	rank := len(shape)
	index, err := a.batchIndex(shape[:rank-2])
	if err != nil {
		return matrix{}, err
	}
	rows, columns := shape[rank-2], shape[rank-1]
	if m.Turned {
		rows, columns = columns, rows
	}
	a.places.limits["row"], a.places.limits["column"] = rows, columns
	last := []affine{variable("row", 1), variable("column", 1)}
	if m.Turned {
		last[0], last[1] = last[1], last[0]
	}
	source := a.places.back(append(index, last...), m.Operand)
	s, err := a.span(flat(source, m.Tensor.Shape))
	if err != nil {
		return matrix{}, err
	}
	if s.columns != 1 || !s.aligned() {
		return matrix{}, unsupported("the rows of %s are not aligned", m.Tensor.Name)
	}
	return matrixAt(a.input(m.Tensor), s), nil
}

// matrixAt is a matrix in the memory of a pointer.
func matrixAt(pointer string, s span) matrix {
	return matrix{fmt.Sprintf("%s + (%s)", pointer, s.first), fmt.Sprint(s.row)}
}

// batchIndex divides the number of a matrix into an index of these dimensions, some of which may be 1 where the scores
// have more.
func (a *attention) batchIndex(shape []int) ([]affine, error) {
	own := a.Product.Shape[:len(a.Product.Shape)-2]
	index := make([]affine, len(shape))
	n := 1
	for _, d := range shape {
		n *= d
	}
	if n != a.batch { // broadcast
		for i, d := range shape {
			if d != 1 {
				at := i + len(own) - len(shape)
				if at < 0 || own[at] != d {
					return nil, unsupported("a matrix has the dimensions %v", shape)
				}
				index[i] = a.place[at]
			}
		}
		return index, nil
	}
	return a.places.unflatten(flat(a.place[:len(own)], own), shape), nil
}

// span takes the row and the column out of a place.
func (a *attention) span(at affine) (span, error) {
	s := span{first: affine{constant: at.constant}}
	for name, factor := range at.factors {
		switch name {
		case "row":
			s.row = factor
		case "column":
			s.columns = factor
		default:
			if a.varies(variable(name, 1)) {
				return s, unsupported("a matrix is not in rows")
			}
			s.first = s.first.plus(variable(name, factor))
		}
	}
	return s, nil
}

// varies reports whether a value differs within a block.
func (a *attention) varies(e affine) bool {
	rank := len(a.place)
	for name := range e.factors {
		if name == "row" || name == "column" || name == axisName(rank-1) || name == axisName(rank-2) {
			return true
		}
		if q, ok := a.places.division(name); ok && a.varies(q.value) {
			return true
		}
	}
	return false
}

// result returns where a product is written.
func (a *attention) result(r fuse.Result) (span, error) {
	views := r.Views
	for len(views) > 0 && views[len(views)-1].Op == fuse.Reshape {
		views = views[:len(views)-1]
	}
	before := fuse.Operand{Tensor: r.Product, Views: views}
	shape := before.Shape()
	s := span{}
	steps, ok := distances(shape, r)
	if !ok {
		return s, unsupported("%s is not written in rows", r.Out.Name)
	}
	s.first.constant = r.Start * product(r.Out.Shape[r.Axis+1:])
	index := make([]affine, len(shape))
	names := map[string]int{} // the distance of an index of Out
	for i, d := range shape {
		if d > 1 {
			name := fmt.Sprintf("r%d", i)
			a.places.limits[name] = d
			index[i] = variable(name, 1)
			names[name] = steps[i]
		}
	}
	source := a.places.back(index, before)
	rank := len(source)
	row, column := source[rank-2], source[rank-1]
	if r.Turned {
		row, column = column, row
	}
	for _, d := range []struct {
		of   affine
		step *int
	}{{row, &s.row}, {column, &s.columns}} {
		if len(d.of.factors) != 1 || d.of.constant != 0 {
			return s, unsupported("%s is not written in rows", r.Out.Name)
		}
		for name, factor := range d.of.factors {
			if factor != 1 || names[name] == 0 {
				return s, unsupported("%s is not written in rows", r.Out.Name)
			}
			*d.step = names[name]
		}
	}
	own := a.Product.Shape[:len(a.Product.Shape)-2]
	number := flat(a.place[:len(own)], own)
	for name, factor := range flat(source[:rank-2], r.Product.Shape[:rank-2]).factors {
		if names[name] == 0 {
			return s, unsupported("%s is not written in rows", r.Out.Name)
		}
		quotient, _ := a.places.divide(number, factor, a.batch)
		_, rest := a.places.divide(quotient, a.places.limits[name], ceil(a.batch, factor))
		s.first = s.first.plus(rest.times(names[name]))
	}
	if s.columns == 1 && !s.aligned() {
		return s, unsupported("the rows of %s are not aligned", r.Out.Name)
	}
	return s, nil
}

// distances returns how far the neighbours of each dimension of a shape are apart in the result's memory. A reshape may
// have joined several dimensions of one to one dimension of the other, as far as they are neighbours in that memory.
func distances(shape []int, r fuse.Result) (steps []int, ok bool) {
	whole := r.Shape()
	steps = make([]int, len(shape))
	// the dimension of the result, how much of it is left, and how far that is apart
	at, left, distance := len(whole), 1, 0
	for i := len(shape) - 1; i >= 0; i-- {
		for left == 1 && shape[i] > 1 && at > 0 {
			at--
			left, distance = whole[at], product(r.Out.Shape[at+1:])
		}
		for left%shape[i] != 0 {
			if at == 0 || whole[at] != r.Out.Shape[at] {
				return nil, false
			}
			at--
			left *= whole[at]
		}
		if shape[i] > 1 {
			steps[i] = distance
		}
		left /= shape[i]
		distance *= shape[i]
	}
	return steps, true
}

func product(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// to is the pointer and the distance of rows of a result.
func (a *attention) to(r fuse.Result, s span) string {
	return fmt.Sprintf("%s + (%s), %d", a.output(r.Out), s.first, s.row)
}

// perRow is the pointer to what is known of each row, of a type.
func (a *attention) perRow(of, pointer string) string {
	own := a.Product.Shape[:len(a.Product.Shape)-2]
	if pointer == "0" {
		return fmt.Sprintf("(%s *)0", of)
	}
	return fmt.Sprintf("%s + (%s)", pointer, flat(a.place[:len(own)], own).times(a.rows))
}
