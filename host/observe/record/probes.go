package record

import (
	"encoding/json"
	"regexp"

	"github.com/xtts-host/xtts-host/host/base/files"
)

const (
	maxProbes = 200
	maxCounts = 256 // of a histogram
)

// Probe describes one tensor at an evaluation.
type Probe struct {
	Step      int64
	Name      string
	Shape     []int64
	Mean, Std *float64
	Min, Max  *float64
	Norm      *float64
	NotFinite int64     `json:"not_finite"`
	Counts    []float64 // of a histogram from Min to Max
	Picture   string
}

// Probes are those of the last evaluation that had any.
type Probes struct {
	Step int64
	List []Probe
	More int // that are left out
}

var inProbes = regexp.MustCompile(`^probes/step-[0-9]{6,18}/[A-Za-z0-9][A-Za-z0-9._+-]{0,200}\.png$`)

func readProbes(path files.Path) (p Probes, problem string) {
	problem = Lines(path, func(line []byte) error {
		var v struct {
			Step *int64
			Probe
		}
		if err := json.Unmarshal(line, &v); err != nil {
			return err
		}
		if v.Step == nil {
			return ErrNoStep
		}
		if *v.Step < p.Step {
			return ErrOrder
		}
		if *v.Step != p.Step {
			p = Probes{Step: *v.Step}
		}
		if len(p.List) == maxProbes {
			p.More++
			return nil
		}
		one := v.Probe
		one.Step = *v.Step
		one.Counts = one.Counts[:min(len(one.Counts), maxCounts)]
		one.Shape = one.Shape[:min(len(one.Shape), 8)]
		if !inProbes.MatchString(one.Picture) {
			one.Picture = ""
		}
		p.List = append(p.List, one)
		return nil
	})
	return p, problem
}
