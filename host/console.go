package host

import (
	"io"

	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/host/report"
)

// Console is how a run meets a person.
type Console struct {
	// Out gets the banner, progress and the final table, Err the warnings. A run waits for neither while it trains.
	Out, Err io.Writer
	// Terminal says that Out is a terminal on which the cursor can be moved: while the run trains, a bar at the foot of it
	// shows how far it is. ErrTerminal says so of Err: then what goes there is put above the bar as well.
	Terminal, ErrTerminal bool
	// Stop, when closed, makes the run save a checkpoint at the next step and end. The run confirms it on Err. Nil
	// never does.
	Stop <-chan struct{}
	// Save makes the run save a checkpoint after the step that it is in, for each value received, and go on. The run confirms it
	// on Err. Nil never does.
	Save <-chan struct{}
}

// sink returns the sink that writes to the console. lost is called when one of its outputs has no reader any more.
func (c Console) sink(now func() event.Snapshot, lost func(text string)) *report.Console {
	s := report.NewConsole(c.Out, c.Err, lost)
	if c.Terminal {
		s.OnTerminal(c.ErrTerminal, now)
	}
	return s
}

// through returns the console of a run, whose Out and Err publish what is written: it appears in the order in which it is written there and
// in which all else happens. Any goroutine may write.
func (c Console) through(bus *event.Bus) Console {
	c.Out, c.Err = messages{bus: bus}, messages{bus: bus, err: true}
	return c
}

// messages publishes whole lines.
type messages struct {
	bus *event.Bus
	err bool
}

func (m messages) Write(text []byte) (int, error) {
	m.bus.Publish(&event.Message{Text: string(text), Err: m.err}) // an error of a sink ends the run at its next step
	return len(text), nil
}
