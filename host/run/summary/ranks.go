package summary

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/run/plan"
)

// stateOfRanks returns a line if the ranks average state: unlike all other results, it may depend on their number.
func stateOfRanks(p *plan.Plan) []string {
	list := p.Bundle.Manifest.State
	if len(list) == 0 || p.World.Alone() {
		return nil
	}
	return []string{fmt.Sprintf("the bundle has state (%s, ...), which is averaged over the %d ranks: batch norm "+
		"takes the statistics of a rank's %s, so its losses are not those of one rank with all rows "+
		"(docs/data-plan.md)",
		list[0].Name, p.World.Size, units.Count(p.Config.BatchSize, "row"))}
}
