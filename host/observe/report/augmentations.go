package report

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// Augmentation counts the rows of training batches that were chosen for an augmentation with p, or in a group, by this
// process. A batch that was built again counts once.
type Augmentation struct {
	Name  string `json:"name"`
	Group string `json:"group,omitempty"` // the entry of the pipeline that chooses it among others
	Given int64  `json:"given"`
	Left  int64  `json:"left"`
}

// augmentations writes the shares of the rows that the augmentations were given.
func (t *table) augmentations(all []Augmentation) {
	var parts []string
	for _, a := range all {
		if n := a.Given + a.Left; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s of %s", a.Name, units.Percent(float64(a.Given)/float64(n)),
				units.Count(n, "row")))
		}
	}
	if len(parts) > 0 {
		t.row("augmented", strings.Join(parts, ", "))
	}
}
