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
	digits, ok := r.Digits()
	s := span{first: affine{constant: r.First()}}
	if ok {
		s.row, s.columns, ok = r.Distances()
	}
	if !ok {
		return s, unsupported("%s is not written in rows", r.Out.Name)
	}
	own := a.Product.Shape[:len(a.Product.Shape)-2]
	number := flat(a.place[:len(own)], own)
	rank := len(digits)
	divisor := 1 // of the number of a matrix, for a dimension of the product
	for i := rank - 3; i >= 0; i-- {
		for _, d := range digits[i] {
			factor := divisor * d.Divisor
			quotient, _ := a.places.divide(number, factor, a.batch)
			_, rest := a.places.divide(quotient, d.Size, ceil(a.batch, factor))
			s.first = s.first.plus(rest.times(d.Step))
		}
		divisor *= r.Product.Shape[i]
	}
	return s, nil
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
