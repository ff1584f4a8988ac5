package event

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// Work is something that a run does besides its steps, and that may take long. It is published when the work begins,
// whenever a part of it is done, and when it has ended, with or without success. One is under way at a time.
type Work struct {
	Task Task
	// Unit is what is counted, in the plural, such as "batches"; empty if nothing is.
	Unit string
	// Done of the Of units are done. Of is 0 if their number is not known, or nothing is counted.
	Done, Of int
	Began    time.Time
	// Ended is true for the last event of the work. Time is the duration so far, of the whole work then.
	Ended bool
	Time  time.Duration
}

// Task is a kind of work besides the steps.
type Task string

// The tasks of a run.
const (
	Reading    Task = "reading"     // lists of clips, and recordings that are hashed
	Opening    Task = "opening"     // plugins and graphs
	Compiling  Task = "compiling"   // kernels, trial runs and CUDA graphs of a GPU
	CatchingUp Task = "catching up" // a resumed run: weights, moments, the lines of the steps before
	Listening  Task = "listening"   // to the voices of the sentences
	Filling    Task = "filling"     // the pipeline with its first batches
	Evaluating Task = "evaluating"
	Speaking   Task = "speaking"
	Saving     Task = "saving"  // a checkpoint
	Tracing    Task = "tracing" // what is not finite
)

// String returns the work as a person reads it: "evaluating 3/40 batches". The unit, which may name a list of the user,
// is visible.Text: the bar of a terminal shows it as it is.
func (w *Work) String() string {
	text, unit := string(w.Task), visible.Text(w.Unit)
	switch {
	case w.Of > 0:
		total := strconv.Itoa(w.Of)
		text += fmt.Sprintf(" %*d/%s", len(total), w.Done, total)
		if unit != "" {
			text += " " + unit
		}
	case w.Done > 0:
		text += " " + strconv.Itoa(w.Done) + " " + unit
	case unit != "":
		text += " " + unit
	}
	return strings.TrimSpace(text)
}

// Left estimates the time to the end of the work from what is done at a time; 0 if it is not known.
func (w *Work) Left(now time.Time) time.Duration {
	if w.Done <= 0 || w.Done >= w.Of {
		return 0
	}
	// Between two parts the estimate stays, rather than growing.
	return max(0, time.Duration(float64(w.Time)*float64(w.Of)/float64(w.Done))-now.Sub(w.Began))
}

// Job publishes the events of one Work. Only one goroutine may use it. A nil Job publishes nothing.
type Job struct {
	bus  *Bus
	work Work
	last time.Time // of the last event
}

// often is the shortest time between two events of a Job, so that many small parts do not fill the queues of sinks.
const often = 100 * time.Millisecond

// Begin publishes the beginning of a work; its Began is now if it is zero. End must be called, also after a failure.
func (b *Bus) Begin(w Work) *Job {
	if w.Began.IsZero() {
		w.Began = time.Now()
	}
	j := &Job{bus: b, work: w}
	j.publish()
	return j
}

// Do counts units that are done, of a number that may have become known only now. Not every call is an event.
func (j *Job) Do(done, of int) {
	if j == nil {
		return
	}
	j.work.Done, j.work.Of = done, of
	if time.Since(j.last) >= often {
		j.publish()
	}
}

// End publishes the end of the work. It is idempotent.
func (j *Job) End() {
	if j != nil && !j.work.Ended {
		j.work.Ended = true
		j.publish()
	}
}

// publish publishes a copy, because Do changes the work. The error of a sink ends the run at its next step.
func (j *Job) publish() {
	w := j.work
	j.last = time.Now()
	w.Time = j.last.Sub(w.Began)
	j.bus.Publish(&w)
}

// Reader publishes the progress of reading. Only one goroutine may use it.
type Reader struct {
	bus *Bus
	job *Job
}

// Reader returns a Reader without a work.
func (b *Bus) Reader() *Reader { return &Reader{bus: b} }

// Progress reports that so many of a number of things are read. Another name of the things is another work.
func (r *Reader) Progress(what string, done, of int) {
	if r.job == nil || r.job.work.Unit != what {
		r.Close()
		r.job = r.bus.Begin(Work{Task: Reading, Unit: what, Of: of})
	}
	r.job.Do(done, of)
}

// Close ends the work.
func (r *Reader) Close() {
	r.job.End()
	r.job = nil
}

// later reports whether an event may be delivered with those after it, because many of its kind come in a short time.
func later(e Event) bool {
	switch e := e.(type) {
	case *Step:
		return true
	case *Work:
		return e.Done > 0 && !e.Ended
	}
	return false
}

func (*Work) event() {}
