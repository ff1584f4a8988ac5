package batch

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
)

// BenchmarkAside measures what leaving out half of the rows of a batch of waveforms costs, beside its floor: the bytes
// of these rows are copied twice and written once.
func BenchmarkAside(b *testing.B) {
	const rows, width = 16, 66150
	bench := newAsideBench(b, []catalog.Instance{sometimes(0.5)}, rows, false, width)
	tensors, slot := bench.runners[0].blanks[0], bench.common.ring.Slot(0)
	left := []int{0, 2, 4, 6, 8, 10, 12, 14}
	size := int64(0)
	for _, t := range tensors {
		size += int64(len(left) * t.Bytes() / rows)
	}
	b.Run("hide and restore", func(b *testing.B) {
		b.SetBytes(size)
		var a aside
		a.hide(slot, tensors, left)
		b.ReportAllocs()
		for b.Loop() {
			a.hide(slot, tensors, left)
			a.restore(slot, tensors)
		}
		b.ReportMetric(float64(cap(a.saved)), "B/slot")
	})
	b.Run("floor", func(b *testing.B) {
		b.SetBytes(size)
		to := make([]byte, size)
		zero := make([]byte, width*4)
		for b.Loop() {
			saved := to
			for _, row := range left {
				data := tensors[0].Row(slot, row)
				copy(saved, data)
				copy(data, zero)
				saved = saved[copy(data, saved):]
			}
		}
	})
}
