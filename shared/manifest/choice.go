package manifest

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Probability is that with which a row of a training batch gets a stage: a constant, or a schedule over the optimizer
// steps. In JSON it is a number, or a list of pairs of a step and a number.
type Probability struct {
	// Points are pairs of a step and a probability, in ascending order of the steps; one pair for a constant.
	Points [][2]float64
}

// At returns the probability in a step: linear between the points, constant before the first and after the last.
func (p *Probability) At(step int64) float64 { return between(p.Points, step) }

// String describes it in a line.
func (p *Probability) String() string {
	if len(p.Points) == 1 {
		return fmt.Sprintf("%g", p.Points[0][1])
	}
	var parts []string
	for _, point := range p.Points {
		parts = append(parts, fmt.Sprintf("%g at step %g", point[1], point[0]))
	}
	return strings.Join(parts, ", ")
}

// Bounds returns the smallest and the largest probability.
func (p *Probability) Bounds() (low, high float64) {
	low, high = p.Points[0][1], p.Points[0][1]
	for _, point := range p.Points {
		low, high = min(low, point[1]), max(high, point[1])
	}
	return low, high
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Probability) UnmarshalJSON(data []byte) error {
	var constant float64
	if json.Unmarshal(data, &constant) == nil {
		p.Points = [][2]float64{{0, constant}}
		return nil
	}
	p.Points = nil
	return json.Unmarshal(data, &p.Points)
}

// MarshalJSON implements json.Marshaler.
func (p Probability) MarshalJSON() ([]byte, error) {
	if len(p.Points) == 1 {
		return json.Marshal(p.Points[0][1])
	}
	return json.Marshal(p.Points)
}

// check returns an error if it is no probability. Each of them says what would be right.
func (p *Probability) check() error {
	last := -1.0
	for _, point := range p.Points {
		step, v := point[0], point[1]
		switch {
		case v > 1 && v <= 100:
			return hint.Errorf(fmt.Sprintf("for %g percent, write %g", v, v/100),
				"p is %g, but a probability is 0 to 1", v)
		case v < 0 || v > 1:
			return hint.Errorf("write 0.3 for 30 percent", "p is %g, but a probability is 0 to 1", v)
		case step < 0:
			return hint.Errorf("the first step is 0", "step %g of p is negative", step)
		case step != math.Trunc(step) || step > 1<<53:
			return hint.Errorf("count optimizer steps from 0", "step %g of p is not a whole number", step)
		case step <= last:
			return hint.Errorf("write each step once, in ascending order", "step %g of p comes after step %g", step,
				last)
		}
		last = step
	}
	if last < 0 {
		return hint.Errorf("write a number, or pairs such as [[0, 0], [5000, 0.5]]", "p is an empty list")
	}
	return nil
}

// Count is how many members of some_of a row gets: any number from Low to High, each as likely. In JSON it is a number
// or [low, high].
type Count struct{ Low, High int }

// UnmarshalJSON implements json.Unmarshaler.
func (c *Count) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &c.Low) == nil {
		c.High = c.Low
		return nil
	}
	var both [2]int
	err := json.Unmarshal(data, &both)
	c.Low, c.High = both[0], both[1]
	return err
}

// MarshalJSON implements json.Marshaler.
func (c Count) MarshalJSON() ([]byte, error) {
	if c.Low == c.High {
		return json.Marshal(c.Low)
	}
	return json.Marshal([]int{c.Low, c.High})
}

func (c Count) String() string {
	if c.Low == c.High {
		return fmt.Sprint(c.Low)
	}
	return fmt.Sprintf("%d to %d", c.Low, c.High)
}

// IsGroup reports whether the entry chooses among other stages and is none itself.
func (s *StageInstance) IsGroup() bool { return s.OneOf != nil || s.SomeOf != nil }

// Members are the stages of a group.
func (s *StageInstance) Members() []StageInstance { return append(slices.Clip(s.OneOf), s.SomeOf...) }

// WeightOr1 is the weight of a member of one_of.
func (s *StageInstance) WeightOr1() float64 {
	if s.Weight == nil {
		return 1
	}
	return *s.Weight
}

// Step is a stage instance of a flat pipeline. Group is the entry of which it is the member with the number Member, nil
// for none.
type Step struct {
	StageInstance
	Group  *StageInstance
	Member int
}

// Steps returns the stage instances of a pipeline in their order, those of groups among them.
func Steps(pipeline []StageInstance) []Step {
	steps := make([]Step, 0, len(pipeline))
	for i := range pipeline {
		entry := &pipeline[i]
		if !entry.IsGroup() {
			steps = append(steps, Step{StageInstance: *entry})
		}
		for k, m := range entry.Members() {
			steps = append(steps, Step{m, entry, k})
		}
	}
	return steps
}

// CheckPipeline refuses names that are not unique, or that equal a phase of the host, and choices that cannot be made.
func CheckPipeline(pipeline []StageInstance) error {
	seen := map[string]bool{}
	claim := func(name string) error {
		switch {
		case seen[name]:
			return hint.Errorf("the random numbers of a stage depend on its name, so each entry needs one of its own",
				"pipeline: two instances are named %q", name)
		case slices.Contains(phases, name):
			return fmt.Errorf("pipeline: %q is the name of a phase of the host", name)
		}
		seen[name] = true
		return nil
	}
	for i := range pipeline {
		entry := &pipeline[i]
		if err := claim(entry.Name); err != nil {
			return err
		}
		if err := entry.check(); err != nil {
			return fmt.Errorf("pipeline[%d] (%s): %w", i, entry.Name, err)
		}
		for k, m := range entry.Members() {
			if err := claim(m.Name); err != nil {
				return err
			}
			if err := m.checkMember(entry); err != nil {
				return fmt.Errorf("pipeline[%d] (%s): %s[%d] (%s): %w", i, entry.Name, entry.kind(), k, m.Name, err)
			}
		}
	}
	return nil
}

// kind is the key of a group with its members.
func (s *StageInstance) kind() string {
	if s.OneOf != nil {
		return "one_of"
	}
	return "some_of"
}

// check refuses an entry of the list whose keys do not belong together.
func (s *StageInstance) check() error {
	if s.P != nil {
		if err := s.P.check(); err != nil {
			return err
		}
	}
	const ofMembers = "weight is for the members of one_of; p is the probability of an entry"
	if !s.IsGroup() {
		switch {
		case s.Weight != nil:
			return hint.Errorf(ofMembers, "weight is not for an entry of its own")
		case s.Count != nil:
			return hint.Errorf("count says how many of some_of a row gets", "count is not for a stage")
		}
		return nil
	}
	switch {
	case s.OneOf != nil && s.SomeOf != nil:
		return hint.Errorf("divide it into two entries", "it has one_of and some_of")
	case s.Stage != "" || s.Config != nil || s.Inputs != nil || s.Outputs != nil || s.Data != nil:
		return hint.Errorf("stage, config, inputs, outputs and data belong to the members",
			"it is a stage and has %s", s.kind())
	case len(s.Members()) == 0:
		return hint.Errorf("list stages, or leave the entry out", "%s is empty", s.kind())
	case s.Weight != nil:
		return hint.Errorf(ofMembers, "weight is not for a group")
	case s.OneOf != nil:
		return s.checkWeights()
	}
	return s.checkCount()
}

func (s *StageInstance) checkWeights() error {
	sum := 0.0
	for k, m := range s.OneOf {
		w := m.WeightOr1()
		if w < 0 || w > 1e6 {
			return hint.Errorf("a member with the weight 2 is chosen twice as often as one with 1",
				"one_of[%d] (%s): weight is %g, but a weight is 0 to 1000000", k, m.Name, w)
		}
		sum += w
	}
	switch {
	case sum == 0:
		return hint.Errorf("give a member a weight above 0; p: 0 switches the group off", "all weights are 0")
	case s.Count != nil:
		return hint.Errorf("some_of chooses several", "count is not for one_of")
	}
	return nil
}

func (s *StageInstance) checkCount() error {
	n := len(s.SomeOf)
	switch c := s.Count; {
	case c == nil:
		return hint.Errorf(fmt.Sprintf("write count: 1, or count: [1, %d] for any number between", n),
			"some_of needs count")
	case c.Low < 0 || c.High < 1 || c.Low > c.High:
		return hint.Errorf(fmt.Sprintf("write a number of 1 to %d, or [1, %d] for any number between", n, n),
			"count is %s", c)
	case c.High > n:
		return hint.Errorf(fmt.Sprintf("the largest count is %d", n), "count is %s, but some_of has %d members", c, n)
	}
	return nil
}

// checkMember refuses a member of a group whose keys are not those of a stage.
func (s *StageInstance) checkMember(group *StageInstance) error {
	switch {
	case s.IsGroup():
		return hint.Errorf("write the inner group as an entry of the pipeline", "a group in a group is not supported")
	case s.Count != nil:
		return hint.Errorf("count belongs to the entry with some_of", "count is not for a member")
	case s.Weight != nil && group.OneOf == nil:
		return hint.Errorf("leave it out, or use one_of", "weight is not for a member of some_of, which are as likely")
	case s.P != nil:
		return s.P.check()
	}
	return nil
}

// Summary describes a group, or a stage, with its probability: "one of (a, b) 80 %".
func (s *StageInstance) Summary() string {
	text := s.Name
	if s.IsGroup() {
		var names []string
		for _, m := range s.Members() {
			names = append(names, m.Summary())
		}
		text = "one of"
		if s.OneOf == nil {
			text = s.Count.String() + " of"
		}
		text += " (" + strings.Join(names, ", ") + ")"
	}
	if s.P == nil {
		return text
	}
	low, high := s.P.Bounds()
	if low == high {
		return fmt.Sprintf("%s %.4g %%", text, 100*low)
	}
	return fmt.Sprintf("%s %.4g to %.4g %%", text, 100*low, 100*high)
}
