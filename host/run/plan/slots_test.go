package plan

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/host/settings/limits"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestStateOfRanks: one line says what several ranks do with state.
func TestStateOfRanks(t *testing.T) {
	d := NewDraft(configtest.Parse(t, "--batch-size", "8"), nil)
	d.Bundle = &ortgraphs.Bundle{Manifest: &manifest.Bundle{State: []manifest.State{{Name: "norm.running_mean"}}}}
	if lines := stateOfRanks(&d.Plan); len(lines) > 0 {
		t.Error(lines)
	}
	d.World.Size = 2
	if lines := stateOfRanks(&d.Plan); len(lines) != 1 || !strings.Contains(lines[0], "(norm.running_mean, ...), which is averaged over the 2 ranks") || !strings.Contains(lines[0], "8 rows") {
		t.Error(lines)
	}
	d.Bundle.Manifest.State = nil
	if lines := stateOfRanks(&d.Plan); len(lines) > 0 {
		t.Error(lines)
	}
}

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
		{limits.Limits{Memory: 1 << 30, Container: 80 << 20}, 40 << 20, "half of the container's memory limit (80 MiB)"},
	} {
		set := configtest.Parse(t, "--ring-memory", "64MiB")
		d := NewDraft(set, nil)
		d.limits = tt.limits
		if room, why := d.ringRoom(); room != tt.room || why != tt.why {
			t.Errorf("%+v: %d, %s; want %d, %s", tt.limits, room, why, tt.room, tt.why)
		}
	}
}
