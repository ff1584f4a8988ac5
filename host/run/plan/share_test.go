package plan

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/world"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
)

// TestShare: the ranks of a machine share plugins if there are any, and none with --verify-plugins.
func TestShare(t *testing.T) {
	two := world.World{Rank: 3, Size: 4, Machine: world.Machine{Index: 1, Size: 2, First: 2}}
	for _, c := range []struct {
		name    string
		world   world.World
		plugins int
		verify  bool
		fed     int
		guest   bool
	}{
		{"one process", world.World{}, 1, false, 1, false},
		{"a guest", two, 1, false, 2, true},
		{"the owner", world.World{Rank: 2, Size: 4, Machine: world.Machine{Size: 2, First: 2}}, 2, false, 2, false},
		{"alone on its machine", world.World{Size: 2, Machine: world.Machine{Size: 1}}, 1, false, 1, false},
		{"no plugins", two, 0, false, 1, false},
		{"verified", two, 1, true, 1, false},
	} {
		p := &Plan{
			World: c.world, Config: &config.Config{VerifyPlugins: c.verify},
			Stages: Stages{Resolved: &catalog.Resolved{Plugins: make([]catalog.Entry, c.plugins)}},
		}
		if p.Fed() != c.fed || p.Guest() != c.guest || (p.ForRanks() == "") != (c.fed == 1) {
			t.Errorf("%s: %d ranks fed, guest %v, %q", c.name, p.Fed(), p.Guest(), p.ForRanks())
		}
	}
}
