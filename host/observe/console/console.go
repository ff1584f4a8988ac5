// Package console connects a command that trains with its user: it has the command's outputs and the user's requests.
package console

import (
	"context"
	"fmt"
	"io"
	"math"
	"time"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// Console is the terminal of a run.
type Console struct {
	// Out receives the banner, progress and the final table, Err the warnings. Training waits for neither.
	Out, Err io.Writer
	// Terminal says that Out is a terminal on which the cursor can be moved: then a bar at the bottom shows progress
	// during training. ErrTerminal says the same of Err: then its output is written above the bar too.
	Terminal, ErrTerminal bool
	// Width returns the present number of columns of the terminal Out, or 0. It may be nil.
	Width func() int
	// ErrWidth is Width of Err.
	ErrWidth func() int
	// Stop, when closed, makes the run save a checkpoint at the next step and end. The run confirms it on Err. It may
	// be nil.
	Stop <-chan struct{}
	// Save makes the run save a checkpoint after the current step, for each value received, and continue. The run
	// confirms it on Err. It may be nil.
	Save <-chan struct{}
}

// Shown returns the console, or one that shows nothing and takes the same requests to stop: that of a rank other than
// the first.
func (c Console) Shown(yes bool) Console {
	if yes {
		return c
	}
	return Console{Out: io.Discard, Err: io.Discard, Stop: c.Stop}
}

// Columns is the width that a line on Out may have.
func (c Console) Columns() int {
	if c.Width != nil {
		if width := c.Width(); width > 0 {
			return width
		}
	}
	return math.MaxInt
}

// Stoppable returns a context that ends with exit.ErrInterrupted when Stop is closed. The user gets a confirmation on
// Err, which names the unit of work after which the command stops. The caller must call the function that is returned,
// which ends the context.
func (c Console) Stoppable(ctx context.Context, unit string) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-c.Stop:
			fmt.Fprintf(c.Err, "stopping after this %s; interrupt again to stop immediately\n", unit)
			cancel(exit.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); <-over }
}

// Patience is how long the command waits for a disk that fails: so many seconds, or until Stop is closed. It says on
// Err for what it waits.
func (c Console) Patience(seconds float64) *files.Patience {
	p := files.NewPatience(time.Duration(seconds*float64(time.Second)), c.Stop)
	p.Warn(func(err error, limit time.Duration) {
		fmt.Fprintln(c.Err, "warning: "+visible.Lines("warning", Awaited(err, limit)))
	})
	return p
}

// Awaited says that a command waits for a disk.
func Awaited(err error, limit time.Duration) string {
	return fmt.Sprintf("the disk fails: %v; tried again for up to %g s (--disk-wait)", err, limit.Seconds())
}

// Waiting shows the progress of reading and speaking on Err.
func (c Console) Waiting() *report.Waiting {
	return report.NewWaiting(visible.Raw(c.Err), c.ErrTerminal)
}

// Messages is Err for complete lines, which are folded on a terminal.
func (c Console) Messages() io.Writer {
	to := visible.Raw(c.Err)
	if c.ErrWidth != nil {
		if width := c.ErrWidth(); width > 0 {
			return fold.NewWriter(to, width)
		}
	}
	return to
}

// Sink returns the sink that writes to the console. lost is called when one of its outputs has been closed.
func (c Console) Sink(now func() event.Snapshot, lost func(text string)) *report.Console {
	s := report.NewConsole(visible.Raw(c.Out), c.Messages(), lost)
	if c.Terminal {
		s.OnTerminal(c.ErrTerminal)
	}
	s.Live(now)
	return s
}

// Through returns a console whose Out and Err publish what is written, so it appears in order with all other events.
// Any goroutine may write.
func (c Console) Through(bus *event.Bus) Console {
	c.Out, c.Err = messages{bus: bus}, messages{bus: bus, err: true}
	return c
}

// messages publishes complete lines.
type messages struct {
	bus *event.Bus
	err bool
}

func (m messages) Write(text []byte) (int, error) {
	m.bus.Publish(&event.Message{Text: string(text), Err: m.err}) // the error of a sink ends the run at its next step
	return len(text), nil
}
