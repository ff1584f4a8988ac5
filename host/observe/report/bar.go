package report

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Bar is the line at the bottom of a terminal that shows the progress of a run:
//
//	step 120/240 ━━━━━━━━━━━━━━━╸─────────────── loss 1.234   11.9 steps/s  stall 0.0 %  eta 14 s
//	step 120/240 ━━━━━━━━━━━━━━━╸─────────────── evaluating  3/40 batches  8 s left
//	reading  1200/13100 lines of metadata.csv ━╸────────────────── 4 s left
//
// It uses the terminal from Start to Close. All other output must go through Write, which puts it above the bar; output
// that does not would break the bar. The bar never changes the cursor or the modes of the terminal, so nothing has to
// be restored after a crash.
//
// Only one goroutine may call Start and Close; Write is safe for concurrent use.
type Bar struct {
	out io.Writer

	mu        sync.Mutex // guards what follows
	container *mpb.Progress
	bar       *mpb.Bar
}

// newBar returns a bar for a terminal. It draws nothing yet; until Start, Write writes directly to out.
func newBar(out io.Writer) *Bar { return &Bar{out: out} }

// Start shows the bar, which calls now for the progress of the run whenever it is drawn. Its goroutines end with Close.
func (b *Bar) Start(now func() event.Snapshot) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.container != nil {
		return
	}
	b.container = mpb.New(mpb.WithOutput(frames{b.out}), mpb.WithAutoRefresh())
	// Without a total, the bar does not end by itself when it is full: the last lines can still be written above it.
	b.bar = b.container.MustAdd(0, mpb.BarFillerFunc(func(w io.Writer, _ decor.Statistics) error {
		_, err := io.WriteString(w, foot(now(), b.columns(), time.Now()))
		return err
	}), mpb.BarFillerTrim())
}

// Write writes complete lines above the bar. They appear at the next refresh, within 150 ms; without a bar,
// immediately.
func (b *Bar) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.container != nil {
		// The container refuses to write after it could not draw. Then the terminal is gone, and an error of out
		// explains it better.
		if n, err := b.container.Write(lines); err == nil {
			return n, nil
		}
	}
	return b.out.Write(lines)
}

// Close removes the bar and returns when every line has been written. Write continues without a bar. Close is
// idempotent.
func (b *Bar) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.container == nil {
		return
	}
	b.bar.Abort(true)
	b.container.Wait()
	b.container, b.bar = nil, nil
}

// frames begins each frame at the left edge. A frame first moves up and erases the previous frame from the cursor's
// column on. The column is another after the user has typed: the terminal shows ^C at the cursor.
type frames struct{ out io.Writer }

func (f frames) Write(frame []byte) (int, error) {
	n, err := f.out.Write(append([]byte{'\r'}, frame...))
	return max(0, n-1), err
}

// columns returns the present width of the terminal, which changes when the user resizes the window.
func (b *Bar) columns() int {
	columns := 80
	if f, ok := b.out.(syscall.Conn); ok {
		// Not by Fd, which would race with a goroutine that closes the file.
		if conn, err := f.SyscallConn(); err == nil {
			_ = conn.Control(func(fd uintptr) {
				if width, _, err := cwriter.GetSize(int(fd)); err == nil && width > 0 {
					columns = width
				}
			})
		}
	}
	return columns
}

// minBar is the number of columns that the moving part keeps; figures are left out if fewer remain.
const minBar = 10

// foot draws the bar one column narrower than the terminal: some terminals begin the next line at the last column.
func foot(s event.Snapshot, columns int, at time.Time) string {
	if s.Phase == event.Preparing || s.Phase == event.WarmingUp || s.Phase == event.Ending {
		return alone(s, columns, at)
	}
	total := s.Run.Total
	left := head(s.Step, total) + " "
	right := " " + tail(s, columns-1-len(left)-minBar-1, at)
	text := left
	if room := columns - 1 - len(left) - len(right); total > 0 && room >= minBar {
		text += meter(s.Step, total, room)
	}
	return cut(text+right, columns)
}

// cut keeps what fits on a line.
func cut(text string, columns int) string {
	runes := []rune(text)
	return string(runes[:min(len(runes), max(0, columns-1))])
}

// alone draws the bar of a work outside training, with how much of the work is done.
func alone(s event.Snapshot, columns int, at time.Time) string {
	w := s.Work
	if w == nil {
		return cut(string(s.Phase), columns)
	}
	left, right := w.String()+" ", " "+takes(w, at)
	if room := min(waitingBar, columns-1-len(left)-len(right)); w.Of > 0 && room >= minBar {
		return left + meter(int64(w.Done), int64(w.Of), room) + right
	}
	return cut(w.String()+" "+right, columns)
}

// takes says how long a work takes.
func takes(w *event.Work, at time.Time) string {
	if left := w.Left(at); left > 0 {
		return units.Duration(left) + " left"
	}
	return units.Duration(at.Sub(w.Began))
}

// meter draws how much of a total is done.
func meter(done, total int64, room int) string {
	full := int(min(done, total) * int64(room) / total)
	return strings.Repeat("━", max(0, full-1)) + strings.Repeat("╸", min(1, full)) + strings.Repeat("─", room-full)
}

// tail returns the figures that fit into a number of columns, in reading order. In a narrow terminal it drops stall,
// speed and remaining time, in this order; the loss stays. Fields have a fixed width so that the bar does not move.
func tail(s event.Snapshot, columns int, at time.Time) string {
	if s.Work != nil {
		text := s.Work.String()
		if long := text + "  " + takes(s.Work, at); len(long) <= columns {
			return long
		}
		return text
	}
	if s.StepsPerSecond == 0 {
		return "first steps"
	}
	figures := []struct {
		rank int
		text string
	}{
		{0, fmt.Sprintf("loss %5s", units.Number(s.Loss))},
		{2, fmt.Sprintf("%5s steps/s", units.Rate(s.StepsPerSecond))},
		{3, fmt.Sprintf("stall %5s", units.Percent(s.InputStall))},
		{1, fmt.Sprintf("eta %-10s", units.Duration(s.Left))},
	}
	if s.Left == 0 {
		figures = figures[:3]
	}
	for most := 3; ; most-- {
		var parts []string
		for _, f := range figures {
			if f.rank <= most {
				parts = append(parts, f.text)
			}
		}
		if text := strings.Join(parts, "  "); most == 0 || len(text) <= columns {
			return text
		}
	}
}
