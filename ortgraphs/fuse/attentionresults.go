package fuse

import "slices"

// Digit is a part of the index into a dimension of a product: the rest of index / Divisor by Size. In the memory of the
// result, its values are Step elements apart.
type Digit struct{ Divisor, Size, Step int }

// Digits returns those of each dimension of the product, the innermost first. It returns false if the views divide the
// dimensions in another way.
func (r Result) Digits() (digits [][]Digit, ok bool) {
	views := r.Views
	for len(views) > 0 && views[len(views)-1].Op == Reshape { // the result may divide the same memory in any way
		views = views[:len(views)-1]
	}
	steps, ok := r.distances(Operand{r.Product, views}.Shape())
	if !ok {
		return nil, false
	}
	a := newAxes()
	whole := a.whole(r.Product.Shape)
	l, ok := a.through(whole, views)
	if !ok {
		return nil, false
	}
	step := map[int]int{} // by atom
	for i, atoms := range l {
		for _, x := range slices.Backward(a.expand(atoms)) {
			step[x] = steps[i]
			steps[i] *= a.size[x-1]
		}
	}
	for _, atoms := range whole {
		var list []Digit
		divisor := 1
		for _, x := range slices.Backward(a.expand(atoms)) {
			if step[x] == 0 {
				return nil, false
			}
			list = append(list, Digit{divisor, a.size[x-1], step[x]})
			divisor *= a.size[x-1]
		}
		digits = append(digits, list)
	}
	return digits, true
}

// Distances returns how far the rows of a matrix, and their elements, are apart in the result's memory. It returns
// false if that is not one distance, or if a kernel cannot write 16 bytes of a row at once where its elements are
// neighbours.
func (r Result) Distances() (row, column int, ok bool) {
	digits, ok := r.Digits()
	if !ok {
		return 0, 0, false
	}
	rank := len(digits)
	row, rows := distance(digits[rank-2])
	column, columns := distance(digits[rank-1])
	if r.Turned {
		row, column = column, row
	}
	if !rows || !columns {
		return 0, 0, false
	}
	if column != 1 {
		return row, column, true
	}
	aligned := row%8 == 0 && r.First()%8 == 0
	for _, list := range digits[:rank-2] {
		for _, d := range list {
			aligned = aligned && d.Step%8 == 0
		}
	}
	return row, column, aligned
}

// First is the place of the first element in the memory of Out.
func (r Result) First() int { return r.Start * product(r.Out.Shape[r.Axis+1:]) }

// distance returns how far the elements of a dimension are apart, if they are at the same distance.
func distance(digits []Digit) (step int, ok bool) {
	if len(digits) == 0 {
		return 0, true
	}
	step = digits[0].Step
	return step, !slices.ContainsFunc(digits, func(d Digit) bool { return d.Step != step*d.Divisor })
}

// distances returns how far the neighbours of each dimension of a shape are apart in the result's memory. A reshape may
// have joined several dimensions of one to one dimension of the other, as far as they are neighbours in that memory.
func (r Result) distances(shape []int) (steps []int, ok bool) {
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
