package dataset

// Examples returns the first row, the one in the middle and the last, to show how the list is read.
func (ix *Index) Examples() (rows []*Row) {
	last := -1
	for _, at := range []int{0, len(ix.Rows) / 2, len(ix.Rows) - 1} {
		if at > last && at < len(ix.Rows) {
			rows = append(rows, &ix.Rows[at])
			last = at
		}
	}
	return rows
}
