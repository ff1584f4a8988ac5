package runlog

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

func TestLog(t *testing.T) {
	var said []string
	l := New(func(w *event.Warning) { said = append(said, w.String()) })
	l.Warn("before there is a file")
	f, err := os.Create(filepath.Join(t.TempDir(), "log.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l.Open(files.From(f), nil)
	l.Info("plugin folder", "dir", "x")
	l.With("plugin", "codes").Warn("slow", "step", 7, "of", "8")
	l.Error("broken")
	if err := l.Take([]event.Event{
		&event.Step{}, &event.Checkpoint{Step: 20, Path: "step-20", Reason: event.Best},
		&event.Checkpoint{Step: 40, Err: errors.New("no room")}, &event.Lowered{Step: 60, LR: 0.5},
		&event.Lowered{Step: 60, Player: "generator", LR: 0.25},
		&event.Adapted{Step: 61, What: event.Depth, From: 2, To: 4, Why: "a reason"},
		&event.Spoken{Step: 60, Folder: "samples/step-60", Samples: 2, Time: time.Second}, &event.Finish{},
		&event.Finish{EarlyStop: &event.EarlyStop{Step: 80, Evaluations: 3}},
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"warning: before there is a file", "warning: slow (step 7, of 8)", "error: broken",
	}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	data, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(string(data)) {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			t.Fatal(err)
		}
		delete(v, "time")
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(text))
	}
	want := []string{
		`{"dir":"x","level":"INFO","msg":"plugin folder"}`,
		`{"level":"WARN","msg":"slow","of":"8","plugin":"codes","step":7}`,
		`{"level":"ERROR","msg":"broken"}`,
		`{"level":"INFO","msg":"checkpoint","path":"step-20","reason":"best","step":20}`,
		`{"level":"INFO","lr":0.5,"msg":"learning rate lowered","step":60}`,
		`{"level":"INFO","lr":0.25,"msg":"learning rate lowered","player":"generator","step":60}`,
		`{"from":2,"level":"INFO","msg":"adapted","step":61,"to":4,"what":"depth","why":"a reason"}`,
		`{"folder":"samples/step-60","level":"INFO","msg":"samples spoken","s":1,"samples":2,"step":60}`,
		`{"evaluations":3,"level":"INFO","msg":"stopped early","step":80}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// A line that is lost ends the run at its next events.
func TestLostLine(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	l := New(func(*event.Warning) {})
	l.Open(files.From(full), nil)
	if err := l.Take(nil); err != nil {
		t.Fatal(err)
	}
	l.Info("lost")
	err = l.Take([]event.Event{&event.Step{}})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "log: ") {
		t.Errorf("error %v", err)
	}
}

// TestLogWaits: who logs does not wait for a full disk, Take does, and no line is lost.
func TestLogWaits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.jsonl")
	good, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer good.Close()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	synctest.Test(t, func(t *testing.T) {
		l := New(func(*event.Warning) {})
		l.Open(files.From(full), files.NewPatience(time.Minute, nil))
		began, taken := time.Now(), make(chan error)
		l.Info("first")
		if took := time.Since(began); took != 0 {
			t.Errorf("a line took %v", took)
		}
		go func() { taken <- l.Take(nil) }()
		time.Sleep(3 * time.Second)
		l.Info("second")
		// the disk has space again
		if err := syscall.Dup3(int(good.Fd()), int(full.Fd()), syscall.O_CLOEXEC); err != nil {
			t.Error(err)
		}
		l.Info("third")
		if err := <-taken; err != nil {
			t.Error(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(path)
	if got := strings.Count(string(text), "\n"); err != nil || got != 3 {
		t.Errorf("%d lines, %v; want 3", got, err)
	}
}
