package plugindev

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
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
	below := filepath.Join(dir, "dsp", "fft")
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
		{"a removed file", func() { os.Remove(filepath.Join(dir, "stage.go")) }, "stage.go"},
	} {
		step.do()
		var got []string
		select {
		case <-w.changed:
			got = w.take()
		case <-time.After(map[bool]time.Duration{true: 4 * quiet, false: 10 * time.Second}[step.want == ""]):
		}
		time.Sleep(2 * quiet) // one more would be a second turn
		got = append(got, w.take()...)
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
