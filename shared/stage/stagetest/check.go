package stagetest

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// checkBucket runs the batches that every stage must handle.
func (k *kit) checkBucket(t *testing.T, bucket int) {
	plain := batch{bucket: bucket, order: [rows]int{0, 1, 2, 3, 4}}
	want := k.run(t, plain)[0]
	k.checkSlot(t, "a batch", plain, want)

	empty := plain
	empty.empty = true
	k.checkSlot(t, "a batch of empty rows", empty, k.run(t, empty)[0])

	if !k.spec.Deterministic {
		return
	}
	for _, again := range k.run(t, plain, plain, plain) {
		if !bytes.Equal(want, again) {
			t.Error(
				"the same batch gave different bits: does the stage use randomness other than Batch.Rand, or keep " +
					"state between calls?")
			break
		}
	}
	asked := plain
	asked.report = true
	if !bytes.Equal(want, k.run(t, asked)[0]) {
		t.Error("the same batch gave other bits when the host asked for its draws: Batch.Report must not change what " +
			"the stage does")
	}
	other := batch{bucket: bucket, order: [rows]int{4, 3, 0, 2, 1}}
	got := k.run(t, other)[0]
	k.compareRows(t, plain, want, other, got)
}

// checkMixed has batches of all buckets in flight at once. Each must have the same result as alone.
func (k *kit) checkMixed(t *testing.T) {
	if !k.spec.Deterministic {
		t.Skip("the stage is not declared deterministic")
	}
	var batches []batch
	for i := range slots {
		batches = append(batches, batch{bucket: i % len(k.layouts), order: [rows]int{0, 1, 2, 3, 4}})
	}
	together := k.run(t, batches...)
	for i, b := range batches {
		if alone := k.run(t, b)[0]; !bytes.Equal(alone, together[i]) {
			t.Errorf(
				"a batch of bucket %d gave different bits when other batches were in flight: do calls share memory?",
				b.bucket)
		}
	}
}

// run sends batches, one per slot, and returns the content of the slots afterwards.
func (k *kit) run(t *testing.T, batches ...batch) [][]byte {
	t.Helper()
	for i, b := range batches {
		k.fill(k.ring.Slot(i), b)
		call := &stagepb.Call{
			Id: uint64(i), Slot: uint32(i), Bucket: uint32(b.bucket), RowKeys: b.keys(), Sources: b.sources(),
			Report: b.report,
		}
		if err := k.stream.Send(call); err != nil {
			t.Fatal(err)
		}
	}
	out := make([][]byte, len(batches))
	for range batches {
		res, err := k.stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if res.Error != "" {
			t.Fatalf("process: %s", res.Error)
		}
		for _, bad := range res.BadRows {
			t.Errorf("row %d of a batch of noise was rejected: %s", bad.Row, bad.Reason)
		}
		out[res.Id] = slices.Clone(k.ring.Slot(int(res.Id)))
	}
	return out
}

// checkSlot compares the content of a slot with the original batch and with the rules for stages.
func (k *kit) checkSlot(t *testing.T, what string, b batch, slot []byte) {
	t.Helper()
	l := &k.layouts[b.bucket]
	if err := l.CheckGuards(slot); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	before := make([]byte, len(slot))
	k.fill(before, b)
	outputs := map[string]bool{}
	for _, p := range k.spec.Outputs {
		outputs[tensorName(p.Name)] = true
	}
	for _, tensor := range l.Tensors {
		if !outputs[tensor.Name] && !bytes.Equal(tensor.In(before), tensor.In(slot)) {
			t.Errorf("%s: %s is not an output, but was changed", what, tensor.Name)
		}
	}
	for _, p := range k.spec.Outputs {
		for row := range rows {
			k.checkRow(t, what, b, p, slot, row)
		}
	}
}

// checkRow checks one row of an output: finite values, followed by padding.
func (k *kit) checkRow(t *testing.T, what string, b batch, p manifest.TensorSpec, slot []byte, row int) {
	t.Helper()
	l := &k.layouts[b.bucket]
	tensor, _ := l.Find(tensorName(p.Name))
	data := tensor.Row(slot, row)
	elements := len(data) / tensor.DType.Size()
	valid := elements
	if p.Lengths != "" {
		n := int(int32(binary.LittleEndian.Uint32(l.View(slot, tensorName(p.Lengths))[4*row:])))
		if n < 0 || n > tensor.Shape[1] {
			t.Errorf("%s: row %d: %s is %d, but %s has only %d elements (was the length written?)", what, row,
				p.Lengths, n, p.Name, tensor.Shape[1])
			return
		}
		if n > 0 && (b.empty || b.order[row] == 1) {
			t.Errorf("%s: row %d is empty, but %s was set to %d", what, row, p.Lengths, n)
		}
		valid = elements / tensor.Shape[1] * n
	}
	if tensor.DType != manifest.F32 {
		return
	}
	for i := range elements {
		v := math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))
		switch {
		case i < valid && (math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)):
			t.Errorf("%s: row %d: element %d of %s is %v", what, row, i, p.Name, v)
			return
		case i >= valid && v != float32(tensor.Pad):
			t.Errorf("%s: row %d: element %d of %s is after the row's %d elements and is %v, not the pad value %v",
				what, row, i, p.Name, valid, v, tensor.Pad)
			return
		}
	}
}

// compareRows compares the rows of one batch with the same rows at other places in another batch.
func (k *kit) compareRows(t *testing.T, a batch, slotA []byte, b batch, slotB []byte) {
	t.Helper()
	l := &k.layouts[a.bucket]
	for rowA, sample := range a.order {
		rowB := slices.Index(b.order[:], sample)
		for _, p := range k.spec.Outputs {
			tensor, _ := l.Find(tensorName(p.Name))
			if !bytes.Equal(tensor.Row(slotA, rowA), tensor.Row(slotB, rowB)) {
				t.Errorf("%s: a row has different bits as row %d and as row %d of a batch: the result must depend "+
					"only on the row and its key",
					p.Name, rowA, rowB)
			}
		}
	}
}
