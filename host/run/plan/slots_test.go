package plan

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/settings/limits"
)

// TestRingRoom: the ring takes what --ring-memory says, and at most half of what the container or the machine has.
func TestRingRoom(t *testing.T) {
	for _, tt := range []struct {
		limits limits.Limits
		room   int
		why    string
	}{
		{limits.Limits{}, 64 << 20, "--ring-memory 64MiB"},
		{limits.Limits{Memory: 1 << 30}, 64 << 20, "--ring-memory 64MiB"},
		{limits.Limits{Memory: 100 << 20}, 50 << 20, "half of the machine's memory (100 MiB)"},
		{
			limits.Limits{Memory: 1 << 30, Container: 80 << 20}, 40 << 20,
			"half of the container's memory limit (80 MiB)",
		},
	} {
		set := configtest.Parse(t, "--ring-memory", "64MiB")
		d := NewDraft(set, nil)
		d.limits = tt.limits
		if room, why := d.ringRoom(); room != tt.room || why != tt.why {
			t.Errorf("%+v: %d, %s; want %d, %s", tt.limits, room, why, tt.room, tt.why)
		}
	}
}
