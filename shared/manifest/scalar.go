package manifest

import (
	"fmt"
	"slices"
)

// The origins of scalars.
const (
	OriginSchedule = "schedule"
	OriginWindow   = "window"
)

// Weighted is the accumulation with one denominator for each term of the loss.
const Weighted = "weighted"

// Scalar is an f32 scalar input of the graphs that the host computes for each batch.
type Scalar struct {
	Name string `json:"name"`
	// Origin is OriginSchedule or OriginWindow.
	Origin string `json:"origin"`
	// Points of a schedule are pairs of a step and a value, in ascending order of the steps.
	Points [][2]float64 `json:"points,omitempty"`
	// Lengths names the lengths input whose sum over all micro-batches of a step is the value, at least 1.
	Lengths string `json:"lengths,omitempty"`
	// PerRow is what each length above 0 adds to the sum: the tokens that the graph itself adds to a row.
	PerRow int `json:"per_row,omitempty"`
}

// At returns the value of a schedule in a step: linear between the points, constant before the first and after the
// last.
func (s Scalar) At(step int64) float64 { return between(s.Points, step) }

// between returns the value of a schedule of pairs of a step and a value.
func between(points [][2]float64, step int64) float64 {
	x := float64(step)
	next := slices.IndexFunc(points, func(p [2]float64) bool { return p[0] > x })
	switch next {
	case -1:
		return points[len(points)-1][1]
	case 0:
		return points[0][1]
	}
	a, b := points[next-1], points[next]
	return a[1] + (b[1]-a[1])*(x-a[0])/(b[0]-a[0])
}

// Last returns the last value of a schedule.
func (s Scalar) Last() float64 { return s.Points[len(s.Points)-1][1] }

// Scheduled returns the names of the scalars with a schedule.
func (b *Bundle) Scheduled() (names []string) {
	for _, s := range b.Scalars {
		if s.Origin == OriginSchedule {
			names = append(names, s.Name)
		}
	}
	return names
}

func (b *Bundle) checkScalars() error {
	windows := 0
	for i, s := range b.Scalars {
		for j := 1; j < len(s.Points); j++ {
			if s.Points[j][0] <= s.Points[j-1][0] {
				return fmt.Errorf("scalars[%d].points[%d]: the steps are not ascending", i, j)
			}
		}
		if s.Origin != OriginWindow {
			continue
		}
		windows++
		if !slices.ContainsFunc(b.Inputs, func(t TensorSpec) bool {
			return t.Name == s.Lengths && t.DType == I32 && len(t.Shape) == 1
		}) {
			return fmt.Errorf("scalars[%d]: %q is not an i32 input with a value for each row", i, s.Lengths)
		}
	}
	if weighted := b.Accumulation == Weighted; weighted != (windows > 0) {
		return fmt.Errorf("accumulation %s and scalars of origin window occur together only", Weighted)
	}
	return nil
}
