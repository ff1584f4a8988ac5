package report

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/report/screentest"
)

var running = event.Snapshot{
	Run: event.Start{Total: 240}, Step: 120, Loss: 1.2344,
	Speed: event.Speed{StepsPerSecond: 11.94, InputStall: 0.004, Left: 14 * time.Second},
}

// standing is the progress of a run that does not advance.
func standing(s event.Snapshot) func() event.Snapshot { return func() event.Snapshot { return s } }

func TestFoot(t *testing.T) {
	began := time.Now()
	skipped, full, last, endless, saving := running, running, running, running, running
	saving.Work = &event.Work{Task: event.Saving, Unit: "a checkpoint", Began: began}
	evaluating, reading, ending := running, event.Snapshot{Phase: event.Preparing}, event.Snapshot{Phase: event.Ending}
	evaluating.Work = &event.Work{
		Task: event.Evaluating, Unit: "batches", Done: 10, Of: 40, Began: began, Time: 4 * time.Second,
	}
	reading.Work = &event.Work{
		Task: event.Reading, Unit: "lines of metadata.csv", Done: 6550, Of: 13100, Began: began, Time: 4 * time.Second,
	}
	skipped.Loss = math.NaN()
	full.Step, full.Left = 240, 0
	last.Left = 0
	endless.Run.Total = 0
	for _, c := range []struct {
		s       event.Snapshot
		columns int
		want    string
	}{
		{
			running, 100,
			"step 120/240 ━━━━━━━━━━━━━━╸──────────────── loss 1.234   11.9 steps/s  stall 0.4 %  eta 14 s      ",
		},
		{running, 79, "step 120/240 ━━━━╸───── loss 1.234   11.9 steps/s  stall 0.4 %  eta 14 s      "},
		{running, 78, "step 120/240 ━━━━━━━━━━╸─────────── loss 1.234   11.9 steps/s  eta 14 s      "},
		{running, 60, "step 120/240 ━━━━━━━━╸────────── loss 1.234  eta 14 s      "},
		{running, 35, "step 120/240 ━━━━╸───── loss 1.234"},
		{running, 30, "step 120/240  loss 1.234"},
		{running, 11, "step 120/2"},
		{running, 0, ""},
		{skipped, 35, "step 120/240 ━━━━╸───── loss     -"},
		{full, 79, "step 240/240 ━━━━━━━━━━━━━━━━━━━━━━━━━╸ loss 1.234   11.9 steps/s  stall 0.4 %"},
		{endless, 78, "step    120  loss 1.234   11.9 steps/s  stall 0.4 %  eta 14 s      "},
		{saving, 45, "step 120/240 ━━━━╸────── saving a checkpoint"},
		{saving, 80, "step 120/240 ━━━━━━━━━━━━━━━━━━╸──────────────────── saving a checkpoint  5.0 s"},
		{evaluating, 80, "step 120/240 ━━━━━━━━━━━━━━╸─────────────── evaluating 10/40 batches  11 s left"},
		{evaluating, 60, "step 120/240 ━━━━╸───── evaluating 10/40 batches  11 s left"},
		{evaluating, 50, "step 120/240 ━━━━╸────── evaluating 10/40 batches"},
		{reading, 80, "reading  6550/13100 lines of metadata.csv ━━━━━━━━━╸────────── 3.0 s left"},
		{reading, 45, "reading  6550/13100 lines of metadata.csv  3"},
		{ending, 45, "ending"},
		{event.Snapshot{Run: event.Start{Total: 240}}, 40, "step   0/240 ────────────── first steps"},
	} {
		if got := foot(c.s, c.columns, began.Add(5*time.Second)); got != c.want {
			t.Errorf("%d columns:\ngot  %q\nwant %q", c.columns, got, c.want)
		}
	}
}

// TestBarOnATerminal checks the screen while the bar is visible, and after it is removed.
func TestBarOnATerminal(t *testing.T) {
	for _, columns := range []int{100, 60, 30} {
		want := fmt.Sprintf("before\nabove 1\nabove 2\n%s\n",
			strings.TrimRight(foot(running, columns, time.Now()), " "))
		var screen string
		// on a busy machine they come late
		for _, refreshes := range []time.Duration{400 * time.Millisecond, 3 * time.Second, 10 * time.Second} {
			if screen = barScreen(t, columns, refreshes); screen == want {
				break
			}
		}
		if screen != want {
			t.Errorf("%d columns: got\n%s\nwant\n%s", columns, screen, want)
		}
	}
}

// barScreen returns the text on a terminal a while after the bar was shown.
func barScreen(t *testing.T, columns int, wait time.Duration) string {
	s := screentest.Open(t, columns, 24)
	b := newBar(s.TTY)
	fmt.Fprintln(b, "before")
	b.Start(standing(running))
	fmt.Fprintln(b, "above 1")
	fmt.Fprintln(b, "above 2")
	time.Sleep(wait)
	screen := s.Close()
	b.Close() // onto a terminal that is gone: it must end all the same
	return screen
}

// TestBarSurvivesTyping: what is typed, ^C among it, moves the cursor.
func TestBarSurvivesTyping(t *testing.T) {
	s := screentest.Open(t, 100, 24)
	b := newBar(s.TTY)
	b.Start(standing(event.Snapshot{Run: event.Start{Total: 240}}))
	for range 3 {
		time.Sleep(200 * time.Millisecond)
		fmt.Fprint(s.TTY, "^C")
	}
	fmt.Fprintln(b, "stopping")
	time.Sleep(200 * time.Millisecond)
	fmt.Fprint(s.TTY, "^C")
	b.Close()
	fmt.Fprintln(b, "the table")
	if got, want := s.Close(), "stopping\nthe table\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestBarKeepsLinesWhole has many goroutines write while the bar is refreshed. Every line is there once and whole, in
// each one's order, and nothing is left of the bar.
func TestBarKeepsLinesWhole(t *testing.T) {
	s := screentest.Open(t, 100, 24)
	b := newBar(s.TTY)
	const writers, each = 4, 100
	var drawn atomic.Int64
	b.Start(func() event.Snapshot {
		now := running
		now.Run.Total, now.Step = 400, drawn.Add(1)
		return now
	})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				fmt.Fprintf(b, "writer %d line %d\n", w, i)
				time.Sleep(4 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	b.Close()
	b.Close()
	fmt.Fprintln(b, "the table")
	lines := strings.Split(s.Close(), "\n")
	if len(lines) != writers*each+2 || lines[writers*each] != "the table" || lines[writers*each+1] != "" {
		t.Fatalf("%d lines, the last are %q", len(lines), lines[max(0, len(lines)-3):])
	}
	var next [writers]int
	for _, line := range lines[:writers*each] {
		var w, i int
		if n, _ := fmt.Sscanf(line, "writer %d line %d", &w, &i); n != 2 || i != next[w] {
			t.Fatalf("line %q, next is %d", line, next[w])
		}
		next[w]++
	}
}

func TestBarThatNeverStarts(t *testing.T) {
	var out bytes.Buffer
	b := newBar(&out)
	fmt.Fprintln(b, "a line")
	b.Close()
	if out.String() != "a line\n" {
		t.Errorf("got %q", out.String())
	}
}
