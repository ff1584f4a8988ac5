package summary

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/run/plan"
	"github.com/xtts-host/xtts-host/host/settings/config/configtest"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestStateOfRanks: one line says what several ranks do with state.
func TestStateOfRanks(t *testing.T) {
	d := plan.NewDraft(configtest.Parse(t, "--batch-size", "8"), nil)
	d.Bundle = &ortgraphs.Bundle{Manifest: &manifest.Bundle{State: []manifest.State{{Name: "norm.running_mean"}}}}
	if lines := stateOfRanks(&d.Plan); len(lines) > 0 {
		t.Error(lines)
	}
	d.World.Size = 2
	if lines := stateOfRanks(&d.Plan); len(lines) != 1 ||
		!strings.Contains(lines[0], "(norm.running_mean, ...), which is averaged over the 2 ranks") ||
		!strings.Contains(lines[0], "8 rows") {
		t.Error(lines)
	}
	d.Bundle.Manifest.State = nil
	if lines := stateOfRanks(&d.Plan); len(lines) > 0 {
		t.Error(lines)
	}
}
