package report

import (
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
)

// FeatureCache describes the use of the feature cache by this process. Counts are of rows of batches, for each stage
// that was asked for them; a batch that was built again counts once.
type FeatureCache struct {
	Folder     string `json:"folder"`
	LimitBytes int64  `json:"limit_bytes"`
	// Bytes is the size of the folder. Of one that takes longer to look through than two seconds, it is without what
	// other processes have written since this one last looked.
	Bytes  int64 `json:"bytes"`
	Hits   int64 `json:"hits"`
	Misses int64 `json:"misses"`
	// HitRatio is the share of hits, 0 if there were no rows.
	HitRatio float64       `json:"hit_ratio"`
	Stages   []CachedStage `json:"stages"`
}

// CachedStage describes the rows of one stage instance.
type CachedStage struct {
	Name   string `json:"name"`
	Hits   int64  `json:"hits"`
	Misses int64  `json:"misses"`
	Stored int64  `json:"stored"` // of the misses
	// Damaged entries count as misses, and are replaced.
	Damaged int64 `json:"damaged,omitempty"`
	// TrainingUncached says why batches of training do not use the cache; empty if they do.
	TrainingUncached string `json:"training_uncached,omitempty"`
}

// features writes the lines about the feature cache.
func (t *table) features(c *FeatureCache) {
	if c == nil {
		return
	}
	rows := c.Hits + c.Misses
	if rows == 0 {
		t.row("feature cache", "not used by any stage")
	} else {
		t.row("feature cache", fmt.Sprintf("%s of %s, %s of %s in %s", units.Percent(c.HitRatio),
			units.Count(rows, "row"), units.Size(c.Bytes), units.Size(c.LimitBytes), c.Folder))
	}
	var stages, without []string
	damaged := int64(0)
	for _, s := range c.Stages {
		if n := s.Hits + s.Misses; n > 0 {
			stages = append(stages, fmt.Sprintf("%s %s", s.Name, units.Percent(float64(s.Hits)/float64(n))))
		}
		if s.TrainingUncached != "" {
			without = append(without, s.Name+" ("+s.TrainingUncached+")")
		}
		damaged += s.Damaged
	}
	if len(stages) > 1 {
		t.row("", strings.Join(stages, ", "))
	}
	if len(without) > 0 {
		t.row("", "not for training: "+strings.Join(without, ", "))
	}
	if damaged > 0 {
		t.row("", units.Count(damaged, "damaged file")+" replaced")
	}
}
