package save

import "time"

// due decides when a checkpoint is due: after a number of steps, and after a time since the last one.
type due struct {
	steps    int64         // 0: not by steps
	interval time.Duration // 0: not by time
	last     time.Time     // of the last checkpoint, or of the start
	failures int           // since the last checkpoint
	retry    int64         // step of the next attempt
}

func newDue(steps int64, interval time.Duration) due {
	return due{steps: steps, interval: interval, last: time.Now()}
}

// ever reports whether checkpoints are saved before the end of the run.
func (d *due) ever() bool { return d.steps > 0 || d.interval > 0 }

// after reports whether a checkpoint is due after a step.
func (d *due) after(step int64) bool {
	if d.failures > 0 && step >= d.retry {
		return true
	}
	return d.steps > 0 && step%d.steps == 0 || d.interval > 0 && time.Since(d.last) >= d.interval
}

// saved records that a checkpoint was saved.
func (d *due) saved() { d.last, d.failures = time.Now(), 0 }

// failed records that a checkpoint could not be saved. The next attempt comes after one step, then two, four and so on.
func (d *due) failed(step int64) {
	d.retry = step + 1<<min(d.failures, 10)
	d.failures++
	d.last = time.Now()
}
