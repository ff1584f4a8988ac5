package host

import "time"

// due decides when a checkpoint is due: after a number of steps, and after a time since the last one.
type due struct {
	steps int64         // 0: not by steps
	pause time.Duration // 0: not by time
	last  time.Time     // of the last checkpoint, or of the start
}

func newDue(steps int64, pause time.Duration) due { return due{steps, pause, time.Now()} }

// ever reports whether checkpoints are saved before the end of the run.
func (d *due) ever() bool { return d.steps > 0 || d.pause > 0 }

// after reports whether one is due after a step.
func (d *due) after(step int64) bool {
	return d.steps > 0 && step%d.steps == 0 || d.pause > 0 && time.Since(d.last) >= d.pause
}

// saved records that a checkpoint was saved.
func (d *due) saved() { d.last = time.Now() }
