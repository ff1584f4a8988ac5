package event

import "time"

// Step is one optimizer step: one batch, or the micro-batches of an accumulation window.
type Step struct {
	// Step counts from 1: it is the number of completed steps.
	Step int64
	// Epoch and Bucket of the last batch.
	Epoch, Bucket int
	// Loss and Metrics are means over the step, weighted by the loss weights.
	Loss     float64
	Own      float64 // the loss of this rank's rows alone
	Metrics  []float64
	LR       float64
	GradNorm float64
	// Skipped steps changed nothing: loss or gradients were not finite, or every row was empty. With several players,
	// at least one of them was skipped.
	Skipped bool
	// Players has what differs by player, if there are several. Loss, LR and GradNorm are those of the last one.
	Players []Player
	// Rows are the rows of the step in the data set, without empty rows.
	Rows []int32
	// Others is the number of rows of the other ranks.
	Others int
	// Named are the first of Rows, at most MaxNamed, by their ids in the data set. Only a skipped step has names.
	Named []string
	// Ranks has the rows of all ranks by rank. Only a skipped step of several has it.
	Ranks []RankRows
	// LeftOut is the number of rows of all ranks that cannot be used; 0 in a run of one process.
	LeftOut int
	// Frames is the number of valid target frames of all ranks.
	Frames int
	// Bottleneck is the part of the pipeline that limits the run, if the step waited long for its batch.
	Bottleneck string
	Times
}

// Samples is the number of rows that the step trained on, those of other ranks included.
func (s *Step) Samples() int { return len(s.Rows) + s.Others }

// RankRows are the rows of a rank in a skipped step.
type RankRows struct {
	Named   []string // the first of them
	Samples int
	Bad     bool // their loss alone is not finite
}

// MaxNamed limits the rows that a skipped step names.
const MaxNamed = 5

// Pace is how fast and how even the steps of a period were. The first step of the process is in no period.
type Pace struct {
	Step      int64   // the last one of the period
	Mean, Std float64 // of the time of a step, in ms; Std is that within buckets
	Rate      float64 // steps per second
	Variation float64 // Std relative to Mean
	Stall     float64 // the share of the time in which training waited for batches
}

// Player is what a step was for one of several players.
type Player struct {
	Name     string
	LR       float64
	GradNorm float64
	Skipped  bool
}

// SkippedPlayers names those of several players that were skipped.
func (s *Step) SkippedPlayers() (names []string) {
	for _, p := range s.Players {
		if p.Skipped {
			names = append(names, p.Name)
		}
	}
	return names
}

// Times are the durations of a step, or sums of them.
type Times struct {
	// Time is the wall time since the end of the previous step, without evaluation. InputWait, Train and Optimize are
	// its parts. On a GPU a step ends when its update has been computed, whenever the host receives the result;
	// Optimize is the time to queue the update, and Train is the rest.
	Time, InputWait, Train, Optimize time.Duration
	// GPUTrain and GPUOptimize are the times of gradients and update on the GPU, by its own clock; 0 on the CPU.
	GPUTrain, GPUOptimize time.Duration
}

// Add adds the durations of o.
func (t *Times) Add(o Times) {
	t.Time += o.Time
	t.InputWait += o.InputWait
	t.Train += o.Train
	t.Optimize += o.Optimize
	t.GPUTrain += o.GPUTrain
	t.GPUOptimize += o.GPUOptimize
}

// Other is the time outside the parts of a step: checkpoints, files, log lines, the trace of a step that is not finite.
func (t *Times) Other() time.Duration { return t.Time - t.InputWait - t.Train - t.Optimize }

// copyTo makes dst a copy of s, and reuses the memory of dst's slices.
func (s *Step) copyTo(dst *Step) {
	metrics, rows, named, players := dst.Metrics[:0], dst.Rows[:0], dst.Named[:0], dst.Players[:0]
	*dst = *s
	dst.Metrics, dst.Rows = append(metrics, s.Metrics...), append(rows, s.Rows...)
	dst.Named, dst.Players = append(named, s.Named...), append(players, s.Players...)
}
