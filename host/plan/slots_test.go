package plan

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/config/configtest"
	"github.com/xtts-host/xtts-host/host/limits"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestStateOfRanks: ranks would have different state.
func TestStateOfRanks(t *testing.T) {
	d := NewDraft(configtest.Parse(t), nil)
	d.Bundle = &ortgraphs.Bundle{Manifest: &manifest.Bundle{State: []manifest.State{{Name: "norm.running_mean"}}}}
	if err := d.checkState(); err != nil {
		t.Error(err)
	}
	d.World.Size = 2
	if err := d.checkState(); err == nil || !strings.Contains(err.Error(), "norm.running_mean") || hint.Of(err) == "" {
		t.Error(err)
	}
	d.Bundle.Manifest.State = nil
	if err := d.checkState(); err != nil {
		t.Error(err)
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
