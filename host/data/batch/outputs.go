package batch

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// outputs are the outputs of a stage instance in one bucket.
type outputs struct {
	lengths []counted        // that the stage writes
	same    [][2]ring.Tensor // lengths that the stage writes, and the lengths that they must equal
	floats  []ring.Tensor    // tensors that could contain values that are not finite
	written []string         // names of all
	fresh   []ring.Tensor    // floats and lengths that are not inputs as well: the stage writes all of them
	aligned []aligned        // lengths that the stage writes and that columns of the list must have
	kept    []ring.Tensor    // small tensors of the batch that the stage must not change: lengths and numbers of rows
}

// counted is a lengths tensor with the largest length that it may have.
type counted struct {
	ring.Tensor
	room int
}

// aligned is a lengths tensor with the columns whose steps it counts.
type aligned struct {
	ring.Tensor
	columns []dataset.Sequence
}

// newOutputs finds the outputs of an instance in a layout. columns are those of the rows.
func newOutputs(in catalog.Instance, layout *ring.Layout, columns *dataset.Columns) outputs {
	o := outputs{written: slices.Collect(maps.Values(in.Outputs))}
	for _, port := range in.Stage.Outputs {
		t, ok := layout.Find(in.Outputs[port.Name])
		if !ok {
			continue // a port that is not bound
		}
		switch t.DType {
		case manifest.F32, manifest.F64, manifest.F16, manifest.BF16:
			o.floats = append(o.floats, t)
			o.addFresh(in, port.Name, t)
		}
		l, ok := layout.Find(in.Outputs[port.Lengths])
		if ok && l.DType == manifest.I32 && len(t.Shape) > 1 {
			o.lengths = append(o.lengths, counted{l, t.Shape[1]})
			known := slices.ContainsFunc(o.aligned, func(had aligned) bool { return had.Name == l.Name })
			if of := columns.Sequences(l.Name); len(of) > 0 && !known {
				o.aligned = append(o.aligned, aligned{l, of})
			}
			o.addFresh(in, port.Lengths, l)
		}
	}
	for _, t := range layout.Tensors {
		if len(t.Shape) == 1 && !slices.Contains(o.written, t.Name) {
			o.kept = append(o.kept, t)
		}
	}
	for _, counts := range slices.Sorted(maps.Keys(in.Recounts)) {
		l, _ := layout.Find(counts)
		graphs, _ := layout.Find(in.Recounts[counts]) // catalog.Resolve has seen both
		o.same = append(o.same, [2]ring.Tensor{l, graphs})
	}
	return o
}

func (o *outputs) addFresh(in catalog.Instance, port string, t ring.Tensor) {
	known := slices.ContainsFunc(o.fresh, func(had ring.Tensor) bool { return had.Name == t.Name })
	if _, edits := in.Inputs[port]; !edits && !known {
		o.fresh = append(o.fresh, t)
	}
}

// save appends the values that the stage must not change, and sets the lengths that it writes to an impossible value.
// So a stage that does nothing cannot return the lengths of an earlier batch.
func (o *outputs) save(slot, to []byte) []byte {
	for _, t := range o.kept {
		to = append(to, t.In(slot)...)
	}
	for _, t := range o.fresh {
		if t.DType == manifest.I32 {
			for i := range t.In(slot) {
				t.In(slot)[i] = unwritten
			}
		}
	}
	return to
}

// checkKept returns an error if the stage has changed a value that it must not change.
func (o *outputs) checkKept(slot, saved []byte) error {
	for _, t := range o.kept {
		now, was := t.In(slot), saved[:t.Bytes()]
		saved = saved[t.Bytes():]
		if bytes.Equal(now, was) {
			continue
		}
		row := 0
		for size := t.DType.Size(); bytes.Equal(now[row*size:(row+1)*size], was[row*size:(row+1)*size]); {
			row++
		}
		return fmt.Errorf("it changed row %d of %s, but %s is not an output of the stage", row, t.Name, t.Name)
	}
	return nil
}

// checkLengths returns an error for a row whose length is impossible: below 0, beyond the tensor, not 0 in an empty row
// (-1 in rows), or different from the graph's length of the row.
func (o *outputs) checkLengths(slot []byte, rows []int32) error {
	for i, row := range rows {
		if err := o.checkLength(slot, i, row); err != nil {
			return err
		}
	}
	return nil
}

func (o *outputs) checkLength(slot []byte, i int, row int32) error {
	if err := o.checkCount(slot, i, row); err != nil {
		return err
	}
	for j := range o.same {
		made, want := &o.same[j][0], &o.same[j][1]
		if n, m := lengthOf(made, slot, i), lengthOf(want, slot, i); n != m {
			return fmt.Errorf("row %d has length %d in %s, but %d in %s", i, n, made.Name, m, want.Name)
		}
	}
	return nil
}

// checkCounts is checkLengths for a call that has left out rows, which count as empty until they are put back.
func (o *outputs) checkCounts(slot []byte, rows []int32) error {
	for i, row := range rows {
		if err := o.checkCount(slot, i, row); err != nil {
			return err
		}
	}
	return nil
}

func (o *outputs) checkCount(slot []byte, i int, row int32) error {
	for j := range o.lengths {
		l := &o.lengths[j]
		switch n := lengthOf(&l.Tensor, slot, i); {
		case n < 0 || n > l.room:
			return fmt.Errorf("row %d has length %d in %s, outside 0 to %d", i, n, l.Name, l.room)
		case row < 0 && n != 0:
			return fmt.Errorf("the empty row %d got length %d in %s", i, n, l.Name)
		}
	}
	return nil
}

func lengthOf(t *ring.Tensor, slot []byte, row int) int {
	return int(int32(binary.LittleEndian.Uint32(t.Row(slot, row))))
}

// misaligned calls found for each row whose columns have another number of steps than the stage has counted.
func (o *outputs) misaligned(slot []byte, batch []int32, rows []dataset.Row, found func(row int, why string)) {
	for _, l := range o.aligned {
		view := l.In(slot)
		for i, row := range batch {
			if row < 0 {
				continue
			}
			n := int(int32(binary.LittleEndian.Uint32(view[4*i:])))
			for _, c := range l.columns {
				if steps := rows[row].Values[c.Place].Length; steps != n {
					found(i, fmt.Sprintf("%s has the length %d, but %s is %d", c.Column, steps, l.Name, n))
				}
			}
		}
	}
}

// notFinite calls found for each row of each tensor that contains a NaN or an infinity.
func (o *outputs) notFinite(slot []byte, found func(row int, tensor string)) {
	for _, t := range o.floats {
		for row := t.NotFinite(slot, 0); row >= 0; row = t.NotFinite(slot, row+1) {
			found(row, t.Name)
		}
	}
}
