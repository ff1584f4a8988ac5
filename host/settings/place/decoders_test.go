package place

import (
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
)

// TestDecoders: beside a GPU, half of the cores decode, unless another number is asked for.
func TestDecoders(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	card := Role{GPU: gpu.Device{UUID: "GPU-a"}}
	for _, c := range []struct {
		asked, cores int
		model        Role
		want         int
	}{
		{0, 16, Role{}, 2}, {5, 16, Role{}, 5}, {0, 1, card, 2}, {0, 6, card, 3}, {0, 16, card, 8}, {0, 64, card, 8},
		{1, 64, card, 1},
	} {
		runtime.GOMAXPROCS(c.cores)
		if got := (Placement{Model: c.model}).Decoders(c.asked); got != c.want {
			t.Errorf("%d asked for, %d cores, GPU %q: %d, want %d", c.asked, c.cores, c.model.GPU.UUID, got, c.want)
		}
	}
}
