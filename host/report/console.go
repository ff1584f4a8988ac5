package report

import (
	"fmt"
	"io"
	"sync"

	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/shared/fold"
)

// Console is the event.Sink that prints lines and, on a terminal, a Bar. It is a best-effort sink: its output may block
// or be closed. It keeps no error, because log.jsonl has the warnings.
type Console struct {
	out, err *reader
	bar      *Bar // nil without a terminal
	now      func() event.Snapshot

	mu    sync.Mutex // guards lines
	lines *Lines     // nil before Follow
}

// Lines formats the lines of a Console about steps and evaluations.
type Lines struct {
	Progress Progress
	Pace     Pace
	// Row names a row of the training data.
	Row func(row int32) string
	// Warn gets the warnings of Pace.
	Warn func(step int64, text string)
}

// NewConsole returns a console that writes to out, and warnings to err. lost, which may be nil, is called once for each
// output that cannot be written to, on the sink's goroutine.
func NewConsole(out, err io.Writer, lost func(text string)) *Console {
	return &Console{
		out: &reader{Writer: out, name: "standard output", lost: lost}, err: &reader{Writer: err, name: "standard error", lost: lost},
	}
}

// OnTerminal makes the console draw a bar at the bottom of the terminal out during training; now returns the progress
// of the run. errToo says that err is the same terminal.
func (c *Console) OnTerminal(errToo bool, now func() event.Snapshot) {
	c.bar, c.now = NewBar(c.out.Writer), now
	c.out.Writer = c.bar
	if errToo {
		c.err = c.out
	}
}

// Follow makes the console print lines about steps from now on. Any goroutine may call it.
func (c *Console) Follow(l Lines) {
	l.Progress.Bar = c.bar != nil
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = &l
}

// Take prints the lines of the events.
func (c *Console) Take(events []event.Event) error {
	c.mu.Lock()
	lines := c.lines
	c.mu.Unlock()
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
		case *event.Phase:
			if e.Phase == event.Training && c.bar != nil {
				c.bar.Start(c.now)
			}
		case *event.Finish:
			c.removeBar()
		case *event.Memory:
			if e.Step > 0 {
				c.print(c.out, fmt.Sprintln(e))
			}
		case *event.Step:
			if lines != nil {
				lines.step(e, c.say)
			}
		case *event.Evaluation:
			if lines != nil {
				c.say(lines.Progress.Evaluated(e))
			}
		}
	}
	return nil
}

func (c *Console) say(line string) {
	if line != "" {
		c.print(c.out, line+"\n")
	}
}

// print writes complete lines, which are folded on a terminal.
func (c *Console) print(to *reader, lines string) {
	if c.bar != nil && to == c.out {
		lines = fold.Text(lines, c.bar.columns())
	}
	io.WriteString(to, lines)
}

// Close removes the bar.
func (c *Console) Close() error {
	c.removeBar()
	return nil
}

func (c *Console) removeBar() {
	if c.bar != nil {
		c.bar.Close()
	}
}

func (l *Lines) step(s *event.Step, say func(line string)) {
	if s.Skipped {
		say(l.Progress.Skipped(s, l.Row))
	}
	say(l.Progress.Step(s))
	line, warning := l.Pace.Step(s)
	say(line)
	if warning != "" {
		l.Warn(s.Step, warning)
	}
}
