package plan

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/settings/limits"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
)

// TestRingRoom: the ring takes what --ring-memory says, and at most half of what the container or the machine has.
func TestRingRoom(t *testing.T) {
	for _, tt := range []struct {
		limits limits.Limits
		ranks  int // on the machine
		room   int
		why    string
	}{
		{limits.Limits{}, 1, 64 << 20, "--ring-memory 64MiB"},
		{limits.Limits{Memory: 1 << 30}, 1, 64 << 20, "--ring-memory 64MiB"},
		{limits.Limits{Memory: 100 << 20}, 1, 50 << 20, "half of the machine's memory (100 MiB)"},
		{
			limits.Limits{Memory: 100 << 20}, 2, 25 << 20,
			"half of the machine's memory (100 MiB) for the 2 ranks of this machine",
		},
		{
			limits.Limits{Memory: 1 << 30, Container: 80 << 20}, 1, 40 << 20,
			"half of the container's memory limit (80 MiB)",
		},
	} {
		set := configtest.Parse(t, "--ring-memory", "64MiB")
		d := NewDraft(set, nil)
		d.limits, d.World.Machine.Size = tt.limits, tt.ranks
		d.Stages.Resolved = &catalog.Resolved{Plugins: make([]catalog.Entry, 1)}
		if room, why := d.ringRoom(); room != tt.room || why != tt.why {
			t.Errorf("%+v: %d, %s; want %d, %s", tt.limits, room, why, tt.room, tt.why)
		}
	}
}
