package plan

import (
	"context"
	"strings"

	"github.com/xtts-host/xtts-host/host/settings/selection"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// SelectProbes finds what the run shows at its evaluations.
func (d *Draft) SelectProbes(context.Context) (err error) {
	patterns := d.Config.Probe
	if len(patterns) == 0 {
		return nil
	}
	if d.Data.Val == nil {
		return hint.Errorf("name validation data with --val-data, or leave --probe out",
			"--probe %s: the run has no evaluations, at which tensors are shown", strings.Join(patterns, ","))
	}
	trained := map[string]bool{}
	for _, p := range d.Players {
		for i, q := range p.Arena.Parameters() {
			trained[q.Name] = p.Arena.Role(i).Trained
		}
	}
	d.Probes, err = selection.Probes(patterns, d.Bundle.Manifest, trained)
	return err
}
