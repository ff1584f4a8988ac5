package host

import (
	"io"
	"sync"

	"github.com/xtts-host/xtts-host/host/report"
)

// Console is how a run meets a person.
type Console struct {
	// Out gets the banner, progress and the final table, Err the warnings.
	Out, Err io.Writer
	// Terminal says that Out is a terminal on which the cursor can be moved: while the run trains, a bar at the foot of it
	// shows how far it is. ErrTerminal says so of Err: then what goes there is put above the bar as well.
	Terminal, ErrTerminal bool
	// Stop, when closed, makes the run save a checkpoint at the next step and end. The run confirms it on Err. Nil
	// never does.
	Stop <-chan struct{}

	bar *report.Bar // nil without a terminal
}

// forRun returns the console of a run, whose bar the run closes. Any goroutine may write to its Out and Err.
func (c Console) forRun() Console {
	if c.Terminal {
		c.bar = report.NewBar(c.Out)
		c.Out = c.bar
		if c.ErrTerminal {
			c.Err = c.bar
		}
	} else {
		c.Out = &locked{out: c.Out}
	}
	c.Err = &locked{out: c.Err}
	return c
}

// locked is a writer for several goroutines: the supervisors of plugins, the trainer, and the watch over GPUs.
type locked struct {
	mu  sync.Mutex // guards out
	out io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
