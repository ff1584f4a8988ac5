package summary

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// TestRing: with --adaptive, the ring has a range of slots only if it has room for more.
func TestRing(t *testing.T) {
	for _, c := range []struct {
		slots, most int
		want        string
	}{{2, 2, "ring of 2 slots of "}, {1, 1, "ring of 1 slot of "}, {2, 50, "ring of 2 to 50 slots of "}} {
		p := &plan.Plan{Config: &config.Config{BufferSize: c.most}, Adaptive: &plan.Adaptive{Slots: c.slots}}
		if got := Ring(p); !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %s", c, got)
		}
	}
}
