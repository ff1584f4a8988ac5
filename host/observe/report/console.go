package report

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Console is the event.Sink that prints lines and, on a terminal, a Bar. It is a best-effort sink: its output may block
// or be closed. It keeps no error, because log.jsonl has the warnings.
//
// It is never silent for long: on a terminal the bar shows any work from its first second on, and elsewhere a line says
// what the run does if nothing else was printed for a while.
type Console struct {
	out, err *lossyWriter
	bar      *Bar // nil without a terminal
	now      func() event.Snapshot
	over     chan struct{} // closed by Close; nil before Live
	watched  sync.WaitGroup

	printing sync.Mutex // guards what follows, and the outputs
	progress *Progress  // nil before the run starts
	spoke    time.Time  // the last line
	ended    bool       // training has ended: nothing but messages follows
}

const (
	// startSilence and silence are the longest times without a line where there is no bar: before training, when the
	// user has seen nothing yet, and in it.
	startSilence = 10 * time.Second
	silence      = 30 * time.Second
	// lookEvery is the time between two looks at the progress of the run.
	lookEvery = time.Second
)

// NewConsole returns a console that writes to out, and warnings to err. lost, which may be nil, is called once for each
// output that cannot be written to, on the sink's goroutine.
func NewConsole(out, err io.Writer, lost func(text string)) *Console {
	return &Console{
		out: &lossyWriter{Writer: out, name: "standard output", lost: lost},
		err: &lossyWriter{Writer: err, name: "standard error", lost: lost},
	}
}

// OnTerminal makes the console draw a bar at the bottom of the terminal out. errToo says that err is the same terminal.
func (c *Console) OnTerminal(errToo bool) {
	c.bar = newBar(c.out.Writer)
	c.out.Writer = c.bar
	if errToo {
		c.err = c.out
	}
}

// Live makes the console look at the progress of the run, which now returns, until Close. It comes after OnTerminal.
func (c *Console) Live(now func() event.Snapshot) {
	c.now, c.over, c.spoke = now, make(chan struct{}), time.Now()
	c.watched.Go(func() {
		t := time.NewTicker(lookEvery)
		defer t.Stop()
		for {
			select {
			case <-c.over:
				return
			case at := <-t.C:
				c.look(at)
			}
		}
	})
}

// look shows the bar when a work has begun to last, or prints a line after a long silence.
func (c *Console) look(at time.Time) {
	s := c.now()
	c.printing.Lock()
	defer c.printing.Unlock()
	switch {
	case c.ended:
	case c.bar != nil:
		if s.Work != nil && at.Sub(s.Work.Began) >= patience {
			c.bar.Start(c.now)
		}
	case c.progress != nil && c.progress.Run.Every == 0: // the user wants no lines of progress
	case at.Sub(c.spoke) >= longest(s):
		c.say(underWay(s, at))
	}
}

// longest returns the longest time without a line. Between steps it is longer: a step that takes less brings its own
// line.
func longest(s event.Snapshot) time.Duration {
	switch {
	case s.Phase == event.Preparing, s.Phase == event.WarmingUp:
		return startSilence
	case s.Work == nil:
		return silence * 3 / 2
	}
	return silence
}

// underWay says what a run does.
func underWay(s event.Snapshot, at time.Time) string {
	switch w := s.Work; {
	case w != nil:
		text := fmt.Sprintf("%s, %s so far", w, units.Duration(at.Sub(w.Began)))
		if left := w.Left(at); left > 0 {
			text += ", " + units.Duration(left) + " left"
		}
		return text
	case s.Phase == event.Training:
		return head(s.Step+1, s.Run.Total) + "  is not complete yet"
	}
	return string(s.Phase)
}

// Take prints the lines of the events. Those of steps and evaluations follow an event.Start.
func (c *Console) Take(events []event.Event) error {
	c.printing.Lock()
	defer c.printing.Unlock()
	for _, e := range events {
		switch e := e.(type) {
		case *event.Message:
			if e.Err {
				c.print(c.err, e.Text)
			} else {
				c.print(c.out, e.Text)
			}
		case *event.Warning:
			c.print(c.err, fmt.Sprintln(e))
		case *event.Start:
			c.progress = &Progress{Run: *e, Bar: c.bar != nil}
		case *event.Phase:
			c.phase(e)
		case *event.Pace:
			c.say(paceLine(e))
		case *event.Lowered:
			c.say(lowered(e))
		case *event.Adapted:
			c.say(e.String())
		case *event.Finish:
			c.ended = true
			c.removeBar()
		case *event.Memory:
			if e.Step > 0 {
				c.print(c.out, fmt.Sprintln(e))
			}
		case *event.Step:
			c.step(e)
		case *event.Evaluation:
			if c.progress != nil {
				c.say(c.progress.Evaluated(e))
			}
		case *event.Spoken:
			c.say(spokenLine(e, c.columns()))
		case *event.Work:
			if c.progress != nil {
				c.progress.Work(e)
			}
		}
	}
	return nil
}

func (c *Console) phase(p *event.Phase) {
	switch p.Phase {
	case event.WarmingUp:
		c.say("waiting for the data pipeline to warm up")
	case event.Training:
		c.say(fmt.Sprintf("training starting now: %s ready after %.2f s\n", units.Count(p.Ready, "batch"),
			p.Filling.Seconds()))
		if c.bar != nil && c.now != nil {
			c.bar.Start(c.now)
		}
	}
}

// lowered says that the learning rate is lower from now on.
func lowered(e *event.Lowered) string {
	what := "lower validation loss"
	if e.By != "" {
		what = "better " + e.By
	}
	return fmt.Sprintf("learning rate%s lowered to %g: no %s in %s", OfPlayer(e.Player), e.LR, what,
		units.Count(e.Patience, "evaluation"))
}

// columns is the width of the terminal, or that of one where the lines may be read later.
func (c *Console) columns() int {
	if c.bar != nil {
		return c.bar.columns()
	}
	return 80
}

func (c *Console) say(line string) {
	if line != "" {
		c.print(c.out, line+"\n")
	}
}

// print writes complete lines, which are folded on a terminal.
func (c *Console) print(to *lossyWriter, lines string) {
	lines = visible.Block(lines)
	if c.bar != nil && to == c.out {
		lines = fold.Text(lines, c.bar.columns())
	}
	c.spoke = time.Now()
	io.WriteString(to, lines)
}

// Close removes the bar.
func (c *Console) Close() error {
	if c.over != nil {
		close(c.over)
		c.watched.Wait()
	}
	c.removeBar()
	return nil
}

func (c *Console) removeBar() {
	if c.bar != nil {
		c.bar.Close()
	}
}

func (c *Console) step(s *event.Step) {
	if c.progress == nil {
		return
	}
	if s.Skipped {
		c.say(c.progress.Skipped(s))
	}
	c.say(c.progress.Step(s))
}
