package watch

import (
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
)

// TestUsed: the driver's figure of the role's processes, or the growth of a card that the role has alone.
func TestUsed(t *testing.T) {
	r := newRig(t, 1, nil)
	expect := func(name string, mb int64, known bool) {
		t.Helper()
		if used, ok := r.Used(name); used != mb*gpu.MB || ok != known {
			t.Errorf("%s: %d MB, known: %t; want %d, %t", name, used/gpu.MB, ok, mb, known)
		}
	}
	r.use(1, map[int]int64{host: 3000, plugin + 50: 700})
	expect(Model, 3000, true)
	r.use(1, map[int]int64{1: 2000}) // ids of other namespaces; the card had 0 MB in use
	expect(Model, 2618, true)
	expect("Other", 0, false)

	r = newRig(t, 1, func(data, model *Role) { model.Place = data.Place })
	r.use(0, map[int]int64{host: 3000, plugin: 700})
	expect(Model, 3000, true)
	expect(Data, 700, true)
	r.use(0, map[int]int64{1: 2000})
	if _, known := r.Used(Model); known {
		t.Error("the growth of a card with two roles is taken for that of one")
	}
	var none *Watch
	if _, known := none.Used(Model); known {
		t.Error("a run on the CPU uses GPU memory")
	}
}
