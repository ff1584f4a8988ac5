package report

import (
	"fmt"
	"io"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

// Waiting shows the progress of work that may take long, such as reading a list or speaking, from its first second on:
// on a terminal in one line, which goes when the work is done, otherwise in a line every five seconds.
type Waiting struct {
	out      io.Writer
	terminal bool
	what     string
	begun    time.Time // the present work
	shown    time.Time // the last line; zero before the first
}

// Times of Waiting.
const (
	patience  = time.Second
	lineEvery = 5 * time.Second
	drawEvery = 200 * time.Millisecond
)

// waitingBar is the number of columns of the bar, which leaves room for the text in a narrow terminal.
const waitingBar = 20

// NewWaiting returns one that writes to out. Only one goroutine may use it. A nil Waiting shows nothing.
func NewWaiting(out io.Writer, terminal bool) *Waiting { return &Waiting{out: out, terminal: terminal} }

// Progress reports that so many of a number of things are done. The number is 0 if it is not known. Another name of the
// things is other work.
func (w *Waiting) Progress(what string, done, of int) { w.Counted("read", what, done, of) }

// Counted reports that so many of a number of things are what done says, such as "evaluated".
func (w *Waiting) Counted(verb, what string, done, of int) {
	if !w.due(what, done) {
		return
	}
	if of == 0 {
		w.show("", fmt.Sprintf("%s %s %s", verb, units.Thousands(done), what))
		return
	}
	left := time.Duration(float64(time.Since(w.begun)) * float64(of-done) / float64(done))
	w.show(meter(int64(done), int64(of), waitingBar)+" ", fmt.Sprintf("%s %s of %s %s (%d %%), %s left", verb,
		units.Thousands(done), units.Thousands(of), what, 100*done/of, units.Duration(left)))
}

// Made reports that so many units have been made, of a number that is not known.
func (w *Waiting) Made(unit string, done int) {
	if w.due(unit, done) {
		w.show("", "made "+units.Count(done, unit))
	}
}

// due reports whether a line is to be shown now.
func (w *Waiting) due(what string, done int) bool {
	if w == nil {
		return false
	}
	now := time.Now()
	if what != w.what {
		w.Close()
		w.what, w.begun, w.shown = what, now, time.Time{}
	}
	every := lineEvery
	if w.terminal {
		every = drawEvery
	}
	return done > 0 && now.Sub(w.begun) >= patience && now.Sub(w.shown) >= every
}

// show shows a line, with a bar only on a terminal. The line may name a list of the user; out shows what it gets as it
// is.
func (w *Waiting) show(bar, line string) {
	w.shown, line = time.Now(), visible.Text(line)
	if w.terminal {
		fmt.Fprintf(w.out, "\r%s%s\x1b[K", bar, line)
	} else {
		fmt.Fprintln(w.out, line)
	}
}

// Close removes the line from the terminal.
func (w *Waiting) Close() {
	if w == nil || !w.terminal {
		return
	}
	if !w.shown.IsZero() {
		io.WriteString(w.out, "\r\x1b[K")
	}
	w.shown = time.Time{}
}
