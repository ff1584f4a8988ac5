package plan

import (
	"runtime"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/place"
)

// TestDecoders: beside a GPU, half of the cores decode, unless --num-workers says something else.
func TestDecoders(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	card := place.Role{GPU: gpu.Device{UUID: "GPU-a"}}
	for _, c := range []struct {
		asked, cores int
		model        place.Role
		want         int
	}{
		{0, 16, place.Role{}, 2}, {5, 16, place.Role{}, 5}, {0, 1, card, 2}, {0, 6, card, 3}, {0, 16, card, 8}, {0, 64, card, 8}, {1, 64, card, 1},
	} {
		runtime.GOMAXPROCS(c.cores)
		p := Plan{Config: &config.Config{NumWorkers: c.asked}, Placement: place.Placement{Model: c.model}}
		if got := p.Decoders(); got != c.want {
			t.Errorf("--num-workers %d, %d cores, GPU %q: %d, want %d", c.asked, c.cores, c.model.GPU.UUID, got, c.want)
		}
	}
}
