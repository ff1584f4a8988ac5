package report

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWaiting(t *testing.T) {
	for _, c := range []struct {
		name     string
		terminal bool
		want     string
	}{
		{"pipe", false, "read 3 of 20 lines (15 %), 5.7 s left\nread 13 of 20 lines (65 %), 3.2 s left\n"},
		{"terminal", true, "\r━━╸───────────────── read 3 of 20 lines (15 %), 5.7 s left\x1b[K\r━━━╸──────────────── " +
			"read 4 of 20 lines (20 %), 6.0 s left\x1b[K"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var out strings.Builder
				w := NewWaiting(&out, c.terminal)
				for i := range 20 {
					w.Progress("lines", i+1, 20)
					time.Sleep(500 * time.Millisecond)
				}
				if got := out.String(); !strings.HasPrefix(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
				w.Progress("files", 1, 20)
				w.Progress("files", 20, 20) // within a second
				w.Close()
				got := out.String()
				if strings.Contains(got, "files") || c.terminal && !strings.HasSuffix(got, "\r\x1b[K") {
					t.Errorf("at the end: %q", got)
				}
			})
		})
	}
}

// TestWaitingShowsNames: the name of a list controls no terminal.
func TestWaitingShowsNames(t *testing.T) {
	for _, terminal := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var out strings.Builder
			w := NewWaiting(&out, terminal)
			for i := range 4 {
				w.Progress("lines of a\n\x1b[2Jb", i+1, 20)
				time.Sleep(2 * time.Second)
			}
			if got := out.String(); strings.Contains(got, "\x1b[2J") || !strings.Contains(got, `lines of a\n\x1b[2Jb`) {
				t.Errorf("terminal %v: %q", terminal, got)
			}
		})
	}
}

// TestWaitingMade: what is made without a known end has no bar.
func TestWaitingMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		w := NewWaiting(&out, true)
		for i := range 4 {
			w.Made("frame", i+1)
			time.Sleep(500 * time.Millisecond)
		}
		for i := range 4 {
			w.Progress("texts of a set", 1000*i, 0)
			time.Sleep(500 * time.Millisecond)
		}
		w.Close()
		want := "\rmade 3 frames\x1b[K\rmade 4 frames\x1b[K\r\x1b[K" +
			"\rread 2,000 texts of a set\x1b[K\rread 3,000 texts of a set\x1b[K\r\x1b[K"
		if got := out.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	synctest.Test(t, func(t *testing.T) { // parts of a second each, to a pipe
		var out strings.Builder
		w := NewWaiting(&out, false)
		for part := range 8 {
			for i := range 2 {
				w.Made("frame", 10*part+i+1)
				time.Sleep(500 * time.Millisecond)
			}
			w.Close()
		}
		if got, want := out.String(), "made 11 frames\nmade 61 frames\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
