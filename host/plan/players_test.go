package plan

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestSettingsOfPlayers: a run's settings are those of the last player; rates of the others keep their ratio, and other values hold for all.
func TestSettingsOfPlayers(t *testing.T) {
	last := manifest.Optimizer{LR: 1e-3, WeightDecay: 0.01, GradClip: 1}
	other := manifest.Optimizer{LR: 3e-3, WeightDecay: 0.2, GradClip: 5}
	like := manifest.Optimizer{LR: 1e-3, WeightDecay: 0.01, GradClip: 1}
	for _, c := range []struct {
		name      string
		own       manifest.Optimizer
		set       config.Config
		lr        float64
		decay, by float64
	}{
		{"the bundle's", other, config.Config{LR: 1e-3, WeightDecay: 0.01, GradClip: 1}, 3e-3, 0.2, 5},
		{"a rate", other, config.Config{LR: 2e-3, WeightDecay: 0.01, GradClip: 1}, 6e-3, 0.2, 5},
		{"decay and clipping", other, config.Config{LR: 1e-3, WeightDecay: 0.5, GradClip: 0}, 3e-3, 0.5, 0},
		{"the last player, or one like it", like, config.Config{LR: 0.7, WeightDecay: 0.6, GradClip: 0.5}, 0.7, 0.6, 0.5},
	} {
		if got := settings(c.own, last, &c.set); got.LR != c.lr || got.WeightDecay != c.decay || got.GradClip != c.by {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}
