package bottleneck

import "fmt"

// Shares are parts of the time of a step, which add up to 1.
type Shares struct {
	// Load is the wait for batches that were still decoded or in a stage, Transfer the wait for their transfer.
	Load     float64 `json:"load"`
	Transfer float64 `json:"transfer"`
	Train    float64 `json:"train"`
	Other    float64 `json:"other"`
}

// Limits of the shares and of the variation, from the documents of MyXTTSModel's profiler. There, the phases follow
// each other; here only their parts count that training waits for.
const (
	MostLoad      = 0.20
	MostTransfer  = 0.15
	LeastTrain    = 0.50
	MostVariation = 0.30
)

// StallLimit is the share of the wait below which training counts as never waiting.
const StallLimit = 0.02

// SharesOf returns the shares of a run; all are 0 if it has no steps.
func SharesOf(m *Measured) Shares {
	if m.Step <= 0 {
		return Shares{}
	}
	exposed := min(m.Exposed, m.Wait)
	return Shares{
		Load: (m.Wait - exposed) / m.Step, Transfer: exposed / m.Step, Other: m.Other / m.Step,
		Train: max(0, m.Step-m.Wait-m.Other) / m.Step,
	}
}

// Check is a figure beside its limit.
type Check struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	// Least says that the limit is the smallest good value, not the largest.
	Least bool `json:"least,omitempty"`
	OK    bool `json:"ok"`
}

// Checks compares the shares of a run and its variation, or that within a bucket if it is less, with their limits.
func Checks(m *Measured) []Check {
	s, variation := SharesOf(m), m.Variation
	if m.BucketVariation >= 0 {
		variation = min(variation, m.BucketVariation) // steps of other buckets do something else
	}
	list := []Check{
		{Name: "data load", Value: s.Load, Limit: MostLoad}, {Name: transfer, Value: s.Transfer, Limit: MostTransfer},
		{Name: Train, Value: s.Train, Limit: LeastTrain, Least: true},
		{Name: "variation", Value: variation, Limit: MostVariation},
	}
	for i := range list {
		c := &list[i]
		c.OK = c.Value <= c.Limit
		if c.Least {
			c.OK = c.Value >= c.Limit
		}
	}
	return list
}

// String writes the figure with a tick or a cross.
func (c Check) String() string {
	mark, limit := "✓", "at most"
	if !c.OK {
		mark = "✗"
	}
	if c.Least {
		limit = "at least"
	}
	return fmt.Sprintf("%s %s %.1f %% (%s %.0f %%)", mark, c.Name, 100*c.Value, limit, 100*c.Limit)
}
