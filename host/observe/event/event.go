package event

import (
	"fmt"
	"slices"
	"time"
)

// Event is one of *Start, *Phase, *Step, *Pace, *Evaluation, *Lowered, *Adapted, *Spoken, *Probed, *Work, *Checkpoint,
// *Memory, *Warning, *Message and *Finish.
type Event interface{ event() }

// Start describes the run. It comes before the first Step.
type Start struct {
	// Dir is the run folder.
	Dir            string
	Bundle, Device string
	// Metrics names the Metrics of steps and evaluations.
	Metrics []string
	// Step is the step that the run continues from, 0 for a new run. Total is its last step.
	Step, Total int64
	// Every is the number of steps between progress lines, 0 for no lines.
	Every int64
}

// Due reports whether a progress line is due after a step: after the first step of a process, at multiples of Every,
// and after the last step.
func (s *Start) Due(step int64) bool {
	return s.Every > 0 && (step == s.Step+1 || step%s.Every == 0 || step == s.Total)
}

// Phase is published when the run enters a phase, at a time.
type Phase struct {
	Phase RunPhase
	At    time.Time
	// Ready counts the batches that the pipeline has prepared when the phase is Training, and Filling is the time that
	// it took for them.
	Ready   int
	Filling time.Duration
}

// RunPhase is a phase of a run.
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
	// Best is true if no evaluation of the run is better, by its loss or by --best-by.
	Best bool
}

// clone returns a deep copy.
func (e *Evaluation) clone() *Evaluation {
	c := *e
	c.Metrics = slices.Clone(e.Metrics)
	return &c
}

// Lowered is published when an evaluation has lowered the learning rate of a player.
type Lowered struct {
	Step   int64
	Player string // empty for the only one
	LR     float64
	// Patience is the number of evaluations that were no better after which it is lowered. By is the measure, "" for
	// the loss.
	Patience int
	By       string
}

// EarlyStop is why a run ended before its last step: so many evaluations in a row had no loss that is lower than Best
// by more than Delta. Best is nil if no evaluation had a finite loss. By is another measure that was no better instead;
// then Best is what it is judged by.
type EarlyStop struct {
	By          string
	Step        int64
	Evaluations int
	Best        *float64
	Delta       float64
}

// Checkpoint is published after a checkpoint was saved, or could not be saved.
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

// Memory is the memory use of one role of the run on a GPU.
type Memory struct {
	// Step is the step of its progress line; 0 for a measurement between progress lines.
	Step int64
	// Role is "Model" or "Data".
	Role string
	// GPU is the index of the GPU, Device its name.
	GPU    int
	Device string
	// Used and Limit are in bytes. Without a limit of the run, Limit is the memory of the card.
	Used, Limit int64
}

// String returns the line of the console: "[Step 100] Model GPU 1: 14336/16384MB (87.5%)".
func (m *Memory) String() string {
	const mb = 1 << 20
	return fmt.Sprintf("[Step %d] %s GPU %d: %d/%dMB (%.1f%%)", m.Step, m.Role, m.GPU, m.Used/mb, m.Limit/mb,
		100*float64(m.Used)/float64(m.Limit))
}

// Warning is a line of the log for the user.
type Warning struct {
	// Error is true for an error, which is worse than a warning.
	Error bool
	// Text is the message with its details, in one line.
	Text string
}

// String returns the line of the console.
func (w *Warning) String() string {
	if w.Error {
		return "error: " + w.Text
	}
	return "warning: " + w.Text
}

// Message is text for the user that no other event has. It consists of complete lines.
type Message struct {
	Text string
	// Err is true if the text belongs on the standard error.
	Err bool
}

// Finish is published when training has ended. No Step, Evaluation or Checkpoint comes after it.
type Finish struct {
	Step int64
	// Outcome is "done", "interrupted", or the error that ended the run.
	Outcome string
	Wall    time.Duration
	// EarlyStop is nil if the run did not end so.
	EarlyStop *EarlyStop
}

func (*Start) event()      {}
func (*Phase) event()      {}
func (*Step) event()       {}
func (*Pace) event()       {}
func (*Evaluation) event() {}
func (*Lowered) event()    {}
func (*Spoken) event()     {}
func (*Probed) event()     {}
func (*Checkpoint) event() {}
func (*Memory) event()     {}
func (*Warning) event()    {}
func (*Message) event()    {}
func (*Finish) event()     {}
