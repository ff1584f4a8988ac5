package event

import (
	"fmt"
	"slices"
	"time"
)

// Event is one of *Start, *Phase, *Step, *Evaluation, *Checkpoint, *Memory, *Warning, *Message and *Finish.
type Event interface{ event() }

// Start says what is going to be trained. It comes before the first Step.
type Start struct {
	// Dir is the run folder.
	Dir            string
	Bundle, Device string
	// Metrics names the Metrics of steps and evaluations.
	Metrics []string
	// Step is the step that the run goes on from, 0 for a new run. Total is its last step.
	Step, Total int64
}

// Phase says that the run enters a phase.
type Phase struct{ Phase RunPhase }

// RunPhase is what a run is doing.
type RunPhase string

// The phases of a run, in their order.
const (
	Preparing RunPhase = "preparing" // before the pipeline runs
	WarmingUp RunPhase = "warm-up"   // the pipeline fills
	Training  RunPhase = "training"
	Ending    RunPhase = "ending" // last checkpoint, report
	Ended     RunPhase = "ended"
)

// Evaluation is the mean over the validation set after a step.
type Evaluation struct {
	Step    int64
	Loss    float64
	Metrics []float64
	Samples int
	Time    time.Duration
	// Best says that no evaluation of the run has a lower loss.
	Best bool
}

// clone returns a copy in memory of its own.
func (e *Evaluation) clone() *Evaluation {
	c := *e
	c.Metrics = slices.Clone(e.Metrics)
	return &c
}

// Checkpoint says that a checkpoint was saved, or that it was not.
type Checkpoint struct {
	Step   int64
	Path   string
	Reason Reason
	Time   time.Duration
	// Err is why a checkpoint was not saved without ending the run: the disk had no room.
	Err error
}

// Reason is why a checkpoint is taken.
type Reason string

// The reasons for a checkpoint.
const (
	Periodic Reason = "periodic" // --checkpoint-every, --checkpoint-minutes
	Asked    Reason = "asked"    // by a signal
	Best     Reason = "best"     // the best evaluation so far
	Last     Reason = "last"     // the run ends
)

// Memory is what one role of the run uses of a GPU.
type Memory struct {
	// Step is the step whose progress line it belongs to; 0 for a look in between.
	Step int64
	// Role is "Model" or "Data".
	Role string
	// GPU is the index of the GPU, Device its name.
	GPU    int
	Device string
	// Used and Limit are bytes. Without a limit of the run, Limit is the whole card.
	Used, Limit int64
}

// String is the line of a person: "[Step 100] Model GPU 1: 14336/16384MB (87.5%)".
func (m *Memory) String() string {
	const mb = 1 << 20
	return fmt.Sprintf("[Step %d] %s GPU %d: %d/%dMB (%.1f%%)", m.Step, m.Role, m.GPU, m.Used/mb, m.Limit/mb, 100*float64(m.Used)/float64(m.Limit))
}

// Warning is a line of the log that a person is to read.
type Warning struct {
	// Error marks what is worse than a warning.
	Error bool
	// Text is the message with its details, in one line.
	Text string
}

// String is the line of a person.
func (w *Warning) String() string {
	if w.Error {
		return "error: " + w.Text
	}
	return "warning: " + w.Text
}

// Message is text for a person that no other event stands for: whole lines.
type Message struct {
	Text string
	// Err says that it belongs on the standard error.
	Err bool
}

// Finish says how training ended. No Step, Evaluation or Checkpoint comes after it.
type Finish struct {
	Step int64
	// Outcome is "done", "interrupted", or the error that ended the run.
	Outcome string
	Wall    time.Duration
}

func (*Start) event()      {}
func (*Phase) event()      {}
func (*Step) event()       {}
func (*Evaluation) event() {}
func (*Checkpoint) event() {}
func (*Memory) event()     {}
func (*Warning) event()    {}
func (*Message) event()    {}
func (*Finish) event()     {}
