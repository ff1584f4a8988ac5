package host

import "time"

// due decides when a checkpoint is due: after a number of steps, and after a time since the last one.
type due struct {
	steps int64         // 0: not by steps
	pause time.Duration // 0: not by time
	last  time.Time     // of the last checkpoint, or of the start
	tries int           // that failed since
	again int64         // step of the next try
}

func newDue(steps int64, pause time.Duration) due {
	return due{steps: steps, pause: pause, last: time.Now()}
}

// ever reports whether checkpoints are saved before the end of the run.
func (d *due) ever() bool { return d.steps > 0 || d.pause > 0 }

// after reports whether one is due after a step.
func (d *due) after(step int64) bool {
	if d.tries > 0 && step >= d.again {
		return true
	}
	return d.steps > 0 && step%d.steps == 0 || d.pause > 0 && time.Since(d.last) >= d.pause
}

// saved records that a checkpoint was saved.
func (d *due) saved() { d.last, d.tries = time.Now(), 0 }

// failed notes that one could not be saved: the next try comes after one step, then two, four and so on.
func (d *due) failed(step int64) {
	d.again = step + 1<<min(d.tries, 10)
	d.tries++
	d.last = time.Now()
}
