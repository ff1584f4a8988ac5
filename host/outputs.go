package host

import (
	"encoding/binary"
	"fmt"

	"github.com/xtts-host/xtts-host/host/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// outputs are what a stage instance writes, in one bucket.
type outputs struct {
	lengths []counted     // that the stage writes
	floats  []ring.Tensor // that could hold what is not finite
}

// counted is a lengths tensor with the room that it counts in.
type counted struct {
	ring.Tensor
	room int
}

// newOutputs finds the outputs of an instance in a layout.
func newOutputs(in catalog.Instance, layout *ring.Layout) outputs {
	var o outputs
	for _, port := range in.Stage.Outputs {
		t, ok := layout.Find(in.Outputs[port.Name])
		if !ok {
			continue // a port that nothing is bound to
		}
		switch t.DType {
		case manifest.F32, manifest.F64, manifest.F16, manifest.BF16:
			o.floats = append(o.floats, t)
		}
		l, ok := layout.Find(in.Outputs[port.Lengths])
		if ok && l.DType == manifest.I32 && len(t.Shape) > 1 {
			o.lengths = append(o.lengths, counted{l, t.Shape[1]})
		}
	}
	return o
}

// checkLengths returns an error for a row whose length is impossible: below 0, beyond the tensor, or not 0 in an empty row,
// which rows has as -1.
func (o *outputs) checkLengths(slot []byte, rows []int32) error {
	for _, l := range o.lengths {
		view := l.In(slot)
		for i, row := range rows {
			n := int(int32(binary.LittleEndian.Uint32(view[4*i:])))
			switch {
			case n < 0 || n > l.room:
				return fmt.Errorf("row %d has length %d in %s, which counts up to %d", i, n, l.Name, l.room)
			case row < 0 && n != 0:
				return fmt.Errorf("the empty row %d got length %d in %s", i, n, l.Name)
			}
		}
	}
	return nil
}

// notFinite calls found for each row of each tensor that holds a NaN or an infinity.
func (o *outputs) notFinite(slot []byte, found func(row int, tensor string)) {
	for _, t := range o.floats {
		for row := t.NotFinite(slot, 0); row >= 0; row = t.NotFinite(slot, row+1) {
			found(row, t.Name)
		}
	}
}
