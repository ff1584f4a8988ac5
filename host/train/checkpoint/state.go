package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xtts-host/xtts-host/host/settings/schedule"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Version is the version that Save writes. Version 1, which is read, had all weights in params.safetensors, and moments
// of frozen ones, too.
const Version = 2

// State is everything of a run but its weights and moments. It holds no clock and no path, so that equal runs save
// equal files; reasons of the quarantine must keep to that.
type State struct {
	// Version is set by Save.
	Version int `json:"version"`
	// Step counts the windows that are over, skipped ones included; it is the next window's index from 0.
	Step int64 `json:"step"`
	// OptimizerStep counts the updates of the weights: windows that were not skipped. With several players it is that
	// of the last one, as Schedule and Plateau are.
	OptimizerStep int64 `json:"optimizer_step"`
	// Players has what differs by player, if there are several.
	Players []Player `json:"players,omitempty"`
	// Epoch and Batch name the next batch: Batch is its index in the epoch.
	Epoch int `json:"epoch"`
	Batch int `json:"batch"`
	// Seed is the run's seed.
	Seed int64 `json:"seed"`
	// Schedule is the course of the learning rate. The first checkpoint fixes TotalSteps: a resumed run with another
	// length keeps its learning rates.
	Schedule schedule.Schedule `json:"schedule"`
	// Plateau is what the schedule plateau has seen, nil with another.
	Plateau *schedule.State `json:"plateau,omitempty"`
	// EMA says how the averages of ema.safetensors came about; nil without averages.
	EMA *EMA `json:"ema,omitempty"`
	// EarlyStop counts the evaluations without a lower loss, nil when it is not asked for.
	EarlyStop *schedule.Waiting `json:"early_stop,omitempty"`
	// Samples and Frames count what was trained on: rows that were not empty, and their frames.
	Samples int64 `json:"samples"`
	Frames  int64 `json:"frames"`
	// EvaluatedStep is the step of the last evaluation, 0 before the first.
	EvaluatedStep int64 `json:"evaluated_step"`
	// Best is the best evaluation so far, nil before the first.
	Best *Best `json:"best,omitempty"`
	// Quarantine lists the rows of the training data that are left out, in any order.
	Quarantine []Quarantined `json:"quarantine,omitempty"`
	// Speakers and Languages are the names that the model knows by number: the place in the list. A checkpoint of an
	// older program has neither.
	Speakers  []string `json:"speakers,omitempty"`
	Languages []string `json:"languages,omitempty"`
	// Hashes names what changes numbers: graph, features, data, pipeline, ... Values are hashes or plain texts.
	Hashes map[string]string `json:"hashes"`
}

// Player has what is counted for each of several players.
type Player struct {
	Name          string `json:"name"`
	OptimizerStep int64  `json:"optimizer_step"`
	// Averaged is EMA.Updates of the player.
	Averaged int64 `json:"averaged,omitempty"`
	// Schedule and Plateau are as in State. A checkpoint of an older program has neither: the players had one schedule.
	Schedule *schedule.Schedule `json:"schedule,omitempty"`
	Plateau  *schedule.State    `json:"plateau,omitempty"`
}

// Add adds what the next player has. One without a name is the only one.
func (s *State) Add(p Player) {
	s.OptimizerStep, s.Schedule, s.Plateau = p.OptimizerStep, *p.Schedule, p.Plateau
	if s.EMA != nil {
		s.EMA.Updates = p.Averaged
	} else {
		p.Averaged = 0
	}
	if p.Name != "" {
		s.Players = append(s.Players, p)
	}
}

// Updates returns the number of updates of a player's weights, and of their average.
func (s *State) Updates(player string) (weights, average int64) {
	for _, p := range s.Players {
		if p.Name == player {
			return p.OptimizerStep, p.Averaged
		}
	}
	if s.EMA != nil {
		average = s.EMA.Updates
	}
	return s.OptimizerStep, average
}

// ScheduleOf returns the learning rate schedule of a player, and what the schedule plateau has seen.
func (s *State) ScheduleOf(player string) (course schedule.Schedule, seen schedule.State) {
	course, plateau := s.Schedule, s.Plateau
	for _, p := range s.Players {
		if p.Name == player && p.Schedule != nil {
			course, plateau = *p.Schedule, p.Plateau
		}
	}
	if plateau != nil {
		seen = *plateau
	}
	return course, seen
}

// Schedules calls change with every schedule and with what it has seen, which is nil unless that is plateau.
func (s *State) Schedules(change func(*schedule.Schedule, *schedule.State)) {
	change(&s.Schedule, s.Plateau)
	for _, p := range s.Players {
		if p.Schedule != nil {
			change(p.Schedule, p.Plateau)
		}
	}
}

// EMA is an exponential moving average of the trained weights.
type EMA struct {
	Decay float64 `json:"decay"`
	// Updates counts the updates of the weights that the average has seen.
	Updates int64 `json:"updates"`
}

// Best is the evaluation with the lowest loss and the step it was made at.
type Best struct {
	Step int64   `json:"step"`
	Loss float64 `json:"loss"`
}

// QuarantineOf returns the rows with these reasons, by id. A checkpoint has them in order.
func QuarantineOf(reasons map[string]string) (rows []Quarantined) {
	for id, reason := range reasons {
		rows = append(rows, Quarantined{ID: id, Reason: reason})
	}
	return rows
}

// Reasons returns the reasons of the rows in the quarantine, by id.
func (s *State) Reasons() map[string]string {
	reasons := map[string]string{}
	for _, q := range s.Quarantine {
		reasons[q.ID] = q.Reason
	}
	return reasons
}

// Quarantined is a row that is left out, and why.
type Quarantined struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// encode returns state.json. Equal states give equal bytes. It refuses what decodeState or its size would refuse.
func (s State) encode() ([]byte, error) { return s.encodeWithin(maxState) }

func (s State) encodeWithin(limit int) ([]byte, error) {
	s.Version = Version
	s.Quarantine = slices.Clone(s.Quarantine)
	slices.SortFunc(s.Quarantine, func(a, b Quarantined) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Reason, b.Reason))
	})
	if s.Hashes == nil {
		s.Hashes = map[string]string{}
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false) // ids and reasons stay readable
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	if out.Len() > limit {
		return nil, hint.Errorf("fix the rows that the quarantine lists, or lower --max-quarantine",
			"%d bytes with %d rows in quarantine, above the limit of %d", out.Len(), len(s.Quarantine), limit)
	}
	return out.Bytes(), nil
}

// decodeState reads state.json. Unknown keys are refused: a checkpoint of a later version must not be
// half understood.
func decodeState(data []byte) (State, error) {
	var s State
	// The decoder would copy blanks until they fit into its buffer, twice the size of the file.
	dec := json.NewDecoder(bytes.NewReader(bytes.TrimSpace(data)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
		return State{}, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return State{}, errors.New("more than one value")
	}
	if s.Version < 1 || s.Version > Version {
		return State{}, fmt.Errorf("version %d, this program reads versions 1 to %d", s.Version, Version)
	}
	return s, s.check()
}

// maxCount is far beyond any run, and counting on from it overflows nothing.
const maxCount = 1 << 53

func (s State) check() error {
	stop := new(schedule.Waiting)
	if s.EarlyStop != nil {
		stop = s.EarlyStop
	}
	ema := new(EMA)
	if s.EMA != nil {
		ema = s.EMA
	}
	type count struct {
		name  string
		value int64
	}
	counts := []count{
		{"step", s.Step}, {"optimizer_step", s.OptimizerStep}, {"epoch", int64(s.Epoch)}, {"batch", int64(s.Batch)},
		{"evaluated_step", s.EvaluatedStep}, {"samples", s.Samples}, {"frames", s.Frames},
		{"early_stop.evaluations", int64(stop.Evaluations)}, {"ema.updates", ema.Updates},
	}
	s.Schedules(func(course *schedule.Schedule, plateau *schedule.State) {
		counts = append(counts, count{"schedule.warmup_steps", course.WarmupSteps},
			count{"schedule.total_steps", course.TotalSteps}, count{"schedule.decay_start", course.DecayStart})
		if plateau != nil {
			counts = append(counts, count{"plateau.reductions", int64(plateau.Reductions)},
				count{"plateau.evaluations", int64(plateau.Evaluations)})
		}
	})
	for i, p := range s.Players {
		counts = append(counts, count{fmt.Sprintf("players[%d].optimizer_step", i), p.OptimizerStep},
			count{fmt.Sprintf("players[%d].averaged", i), p.Averaged})
		if p.OptimizerStep > s.Step {
			return fmt.Errorf("players[%d].optimizer_step %d is larger than step %d", i, p.OptimizerStep, s.Step)
		}
	}
	for _, c := range counts {
		if c.value < 0 || c.value > maxCount {
			return fmt.Errorf("%s is %d", c.name, c.value)
		}
	}
	if s.OptimizerStep > s.Step {
		return fmt.Errorf("optimizer_step %d is larger than step %d", s.OptimizerStep, s.Step)
	}
	return nil
}
