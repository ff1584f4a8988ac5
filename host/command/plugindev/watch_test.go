package plugindev

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// TestWatch: changes of sources are noticed, once for a burst; what is no source is not, nor is the same content.
func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stage.go", "package a")
	write(t, filepath.Join(dir, ".venv"), "made", "")
	w, err := watch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	w.ignore("program")
	below, large, other := filepath.Join(dir, "dsp", "fft"), filepath.Join(dir, "weights.bin"), t.TempDir()
	for _, step := range []struct {
		what string
		do   func()
		want string // what has changed; empty: nothing
	}{
		{"a burst", func() {
			for _, text := range []string{"", "package", "package b"} {
				write(t, dir, "stage.go", text)
				time.Sleep(quiet / 4)
			}
		}, "stage.go"},
		{"the same content", func() { write(t, dir, "stage.go", "package b") }, ""},
		{"a rename over it", func() {
			write(t, dir, "stage.go.new", "package c")
			os.Rename(filepath.Join(dir, "stage.go.new"), filepath.Join(dir, "stage.go"))
		}, "stage.go"},
		{"a cache", func() {
			write(t, filepath.Join(dir, "__pycache__"), "stage.pyc", "x")
			write(t, filepath.Join(dir, ".venv"), "made", "x")
			write(t, dir, ".stage.go.swp", "x")
			write(t, dir, "stage.go~", "x")
		}, ""},
		{"an output", func() { write(t, dir, "program", "x"); write(t, dir, "plugin.sum", "x") }, ""},
		{"a new folder", func() { write(t, below, "fft.go", "package fft") }, "dsp/fft/fft.go"},
		{"in a new folder", func() { write(t, below, "fft.go", "package d") }, "dsp/fft/fft.go"},
		{"a folder in its place", func() {
			write(t, filepath.Join(other, "fft"), "fft.go", "package e")
			os.Rename(below, filepath.Join(other, "was"))
			os.Rename(filepath.Join(other, "fft"), below)
		}, "dsp/fft/fft.go"},
		{"in the folder in its place", func() { write(t, below, "fft.go", "package f") }, "dsp/fft/fft.go"},
		{"a folder that has gone", func() { os.Rename(filepath.Dir(below), filepath.Join(other, "dsp")) },
			"dsp/fft/fft.go"},
		{"a lost event", func() {
			w.notify.Remove(dir)
			write(t, dir, "stage.go", "package g")
			w.notify.Errors <- fsnotify.ErrEventOverflow
		}, "stage.go"},
		{"a large file", func() { os.WriteFile(large, make([]byte, largest+1), 0o666) }, "weights.bin"},
		{"in a large file", func() {
			f, err := os.OpenFile(large, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			f.WriteAt([]byte{1}, largest)
		}, "weights.bin"},
		{"a removed file", func() { os.Remove(filepath.Join(dir, "stage.go")) }, "stage.go"},
	} {
		step.do()
		var got []string
		select {
		case <-w.changed:
			got, _, _ = w.take()
		case <-time.After(map[bool]time.Duration{true: 4 * quiet, false: 10 * time.Second}[step.want == ""]):
		}
		time.Sleep(2 * quiet) // one more would be a second turn
		more, _, err := w.take()
		if got = append(got, more...); err != nil {
			t.Error(err)
		}
		select {
		case <-w.changed:
		default:
		}
		got = slices.Compact(got)
		if strings.Join(got, " ") != step.want {
			t.Errorf("%s: %q, want %q", step.what, got, step.want)
		}
	}
}

// TestUnwatched: that a folder cannot be watched is no secret.
func TestUnwatched(t *testing.T) {
	dir := t.TempDir()
	w, err := watch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	w.close() // every further folder is refused, as when there are no more watches
	write(t, filepath.Join(dir, "dsp"), "fft.go", "package fft")
	w.settle(map[string]bool{"dsp": true})
	<-w.changed
	changed, _, err := w.take()
	if !errors.Is(err, fsnotify.ErrClosed) || !slices.Equal(changed, []string{"dsp/fft.go"}) {
		t.Errorf("%q, %v", changed, err)
	}
}

// TestLearn: what is saved during builds in a row is built each time. Then only what is saved between builds is, after
// which the file is a source like any other.
func TestLearn(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "stage.go", "package a")
	w, err := watch(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	isDuring := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.during["stage.go"]
	}
	for i, step := range []struct {
		built, learned bool
		want           string
	}{
		{true, false, "stage.go"}, {true, false, "stage.go"}, {true, true, "stage.go"}, {true, false, ""},
		{false, false, "stage.go"},
		{true, false, "stage.go"}, {true, false, "stage.go"}, {true, true, "stage.go"}, {true, false, ""},
	} {
		if step.built {
			w.building(true)
		} else {
			time.Sleep(2 * lateEvents)
		}
		write(t, dir, "stage.go", strings.Repeat("\n", i))
		for step.built && !isDuring() {
			time.Sleep(time.Millisecond)
		}
		if step.built {
			w.building(false)
		}
		select {
		case <-w.changed:
		case <-time.After(map[bool]time.Duration{true: 4 * quiet, false: 10 * time.Second}[step.want == ""]):
		}
		changed, learned, err := w.take()
		if strings.Join(changed, " ") != step.want || (len(learned) > 0) != step.learned || err != nil {
			t.Errorf("%d: changed %q, learned %q, %v, want %+v", i, changed, learned, err, step)
		}
	}
}
