package train

import "math"

// Schedule gives the learning rate of every step.
type Schedule struct {
	Name        string // "constant" or "cosine"
	BaseLR      float64
	WarmupSteps int64
	// TotalSteps is the length of the run, where the cosine reaches 0. It is fixed when the run starts: a
	// resumed run keeps it.
	TotalSteps int64
}

// LR returns the learning rate of step s, counted from 0:
// base * min(1, (s+1)/warmup), times (1+cos(pi*s/total))/2 with "cosine".
func (c Schedule) LR(s int64) float64 {
	lr := c.BaseLR
	if s+1 < c.WarmupSteps {
		lr *= float64(s+1) / float64(c.WarmupSteps)
	}
	if c.Name == "cosine" && c.TotalSteps > 0 {
		lr *= (1 + math.Cos(math.Pi*min(1, float64(s)/float64(c.TotalSteps)))) / 2
	}
	return lr
}
