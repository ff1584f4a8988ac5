package event

import "fmt"

// Adapted is published when a run with --adaptive has changed a number.
type Adapted struct {
	// Step is the step that the trainer was about to begin, counted from 1.
	Step int64
	// What is "depth" for the number of batches that are prepared ahead, "decode" for that of decoders, or the name of
	// a plugin for that of its processes.
	What     string
	From, To int
	// Why has the measurements.
	Why string
}

// Depth is the name of the number of batches that are prepared ahead, and Decoders that of decoders.
const (
	Depth    = "depth"
	Decoders = "decode"
)

// String returns the line of the console.
func (a *Adapted) String() string {
	what := "processes of plugin " + a.What
	switch a.What {
	case Depth:
		what = "batches ahead"
	case Decoders:
		what = "decoders"
	}
	return fmt.Sprintf("adaptive: %d instead of %d %s: %s", a.To, a.From, what, a.Why)
}

func (*Adapted) event() {}
