package fuse

import "slices"

// copyToRows copies each matrix that is not in rows in memory to one that is, and lets the products read the copy.
func (f *finding) copyToRows(g *Graph) {
	type copied struct {
		of *Matrix
		to *Tensor
	}
	var copies []copied
	rows := func(n *Node, operand int, columns bool) {
		m := matrix(n, operand, columns)
		if m.inRows() {
			return
		}
		o := m.Operand
		if m.Turned {
			o = o.swapped()
		}
		i := slices.IndexFunc(copies, func(c copied) bool { return same(c.of, m) })
		if i < 0 {
			i = len(copies)
			c := &Node{Kind: Elementwise, Op: "Copy", In: []Operand{o}}
			copies = append(copies, copied{m, c.makes(m.Tensor.Name+"/rows", m.Tensor.Type, o.Shape())})
			g.Nodes = append(g.Nodes, c)
		}
		n.In[operand] = Operand{Tensor: copies[i].to}.view(View{Op: Reshape, To: o.Shape()})
		n.Transposed[operand] = columns
	}
	rows(f.product, 0, false)
	rows(f.product, 1, true)
	if f.gradient != nil {
		rows(f.gradient, 0, false)
		rows(f.gradient, 1, true)
	}
	for _, r := range f.readers {
		rows(r.node, 1-r.operand, r.operand == 1)
	}
}

// swapped is the operand with its last two dimensions exchanged.
func (o Operand) swapped() Operand {
	shape := o.Shape()
	perm := make([]int, len(shape))
	for i := range perm {
		perm[i] = i
	}
	last := len(shape) - 1
	perm[last-1], perm[last] = last, last-1
	return o.view(View{Op: Transpose, Perm: perm, To: permuted(shape, perm)})
}

// inRows reports whether the elements of each row are neighbours in memory, and the rows at the same distance, each
// from a multiple of 16 bytes on.
func (m *Matrix) inRows() bool {
	rows, columns, batch := m.size()
	step := m.place(0, 1, 0) - m.place(0, 0, 0)
	for i := range batch {
		first := m.place(i, 0, 0)
		at := func(row, column int) bool { return m.place(i, row, column) == first+row*step+column }
		if first%8 != 0 || step%8 != 0 || !at(0, columns-1) || !at(rows-1, 0) || !at(rows-1, columns-1) {
			return false
		}
		if i > 0 {
			continue
		}
		for row := range rows {
			if !at(row, 0) {
				return false
			}
		}
		for column := range columns {
			if !at(0, column) || !at(rows-1, column) {
				return false
			}
		}
	}
	return true
}
