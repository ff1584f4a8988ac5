package trace

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/trace/tracetest"
)

func create(t *testing.T) (*Writer, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "timeline.json")
	w, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, path
}

// TestKilled: flushed events can be read although the file was never closed. A closed file is valid JSON.
func TestKilled(t *testing.T) {
	w, path := create(t)
	odd := "a \"stage\" \\ of\nلحن"
	track := w.Track("group", odd, 7)
	at := w.start.Add(1234567 * time.Nanosecond)
	w.Span(track, odd, at, at.Add(89), []Arg{{"batch", 3}})
	w.Count("group", "slots", at, []Arg{{"ready", 2}})
	w.Flush()
	w.Span(track, "lost", at.Add(time.Second), at.Add(time.Minute), nil)
	killed := tracetest.Read(t, path)
	want := []Span{{Name: odd, Began: 1234567, Ended: 1234656, Args: map[string]int{"batch": 3}}}
	if got := killed.Spans["group"][odd]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := killed.Counters["slots ready"]; !reflect.DeepEqual(got, []int{2}) {
		t.Errorf("counter %v", got)
	}
	for range 2 {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	w.Span(track, "late", at, at, nil)
	w.Flush()
	if got := tracetest.Read(t, path).Spans["group"][odd]; len(got) != 2 {
		t.Errorf("%d spans after Close", len(got))
	}
	valid(t, path)
}

type Span = tracetest.Span

func valid(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !json.Valid(data) {
		t.Errorf("a closed file is not JSON: %v\n%s", err, data)
	}
}

func TestEmpty(t *testing.T) {
	w, path := create(t)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	valid(t, path)
}

// TestBound: a file ends before MaxBytes, and is complete.
func TestBound(t *testing.T) {
	w, path := create(t)
	track := w.Track("group", "track", 0)
	w.size = MaxBytes - 1000 // as if so much had been written
	for i := range 100 {
		at := w.start.Add(time.Duration(i))
		w.Span(track, "span", at, at, nil)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(tracetest.Read(t, path).Spans["group"]["track"]); n < 5 || n > 15 || w.size+len(ending) > MaxBytes {
		t.Errorf("%d spans in the last 1000 bytes, %d of %d bytes", n, w.size+len(ending), MaxBytes)
	}
	valid(t, path)
}

func TestFullDisk(t *testing.T) {
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	w := &Writer{path: "/dev/full", file: files.From(file), start: time.Now()}
	w.Track("group", "track", 0)
	w.Flush()
	w.Track("group", "another", 1)
	for range 2 {
		if err := w.Close(); !files.IsFull(err) {
			t.Errorf("%v, want %v", err, syscall.ENOSPC)
		}
	}
}

func TestManyWriters(t *testing.T) {
	w, path := create(t)
	var wg sync.WaitGroup
	const each = 1000
	for _, name := range []string{"a", "b", "c"} {
		track := w.Track("group", name, 0)
		wg.Go(func() {
			for i := range each {
				w.Span(track, name, w.start.Add(time.Duration(i)), w.start.Add(time.Duration(i+1)), nil)
			}
		})
	}
	wg.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, spans := range tracetest.Read(t, path).Spans["group"] {
		if len(spans) != each {
			t.Errorf("%s has %d spans", name, len(spans))
		}
	}
}

func TestNothing(t *testing.T) {
	w, err := Create("")
	if w != nil || err != nil {
		t.Fatalf("%v, %v", w, err)
	}
	line := NewTimeline(w, Run{})
	if line != nil {
		t.Fatal("a timeline without a file")
	}
	now := time.Now()
	w.Span(w.Track("g", "t", 0), "", now, now, nil)
	w.Count("g", "", now, nil)
	w.Flush()
	line.Trained("train", nil, now, now)
	line.Computed("train", now, now)
	line.Copied(now, now)
	line.Step()
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Create(filepath.Join(t.TempDir(), "no", "folder")); err == nil {
		t.Error("a file in no folder")
	}
}
