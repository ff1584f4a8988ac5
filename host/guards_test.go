package host

import (
	"errors"
	"testing"

	"github.com/xtts-host/xtts-host/host/pipeline"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// TestDamageRebuildsEverythingInFlight: what was begun before the ring was damaged is built again, also where no guard shows it.
func TestDamageRebuildsEverythingInFlight(t *testing.T) {
	layout := ring.NewLayout([]ring.Tensor{{Name: "mel", DType: manifest.F32, Shape: []int{3, 5, 2}}}, nil)
	r, err := ring.Create(4, layout.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g := newGuards(r, []ring.Layout{layout})
	var batches []*pipeline.Batch
	for slot := range 3 { // slot 3 has had no batch, and so no guards
		batches = append(batches, &pipeline.Batch{Slot: slot})
		g.begin(batches[slot])
	}
	for _, b := range batches {
		if err := g.check(b, nil); err != nil {
			t.Fatalf("slot %d: %v", b.Slot, err)
		}
	}
	clear(r.Slot(1))
	const want = "batch must be built again: 1 ring slots were overwritten: byte 0 behind the end of tensor \"mel\" was overwritten"
	if err := g.check(batches[1], nil); !errors.Is(err, pipeline.ErrRebuild) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	for _, slot := range []int{0, 1, 2} {
		if err := g.check(batches[slot], nil); !errors.Is(err, pipeline.ErrRebuild) {
			t.Errorf("slot %d, begun before: %v", slot, err)
		}
		g.begin(batches[slot])
		if err := g.check(batches[slot], nil); err != nil {
			t.Errorf("slot %d, begun behind it: %v", slot, err)
		}
	}
}
