// Package tracetest reads a timeline and checks what every viewer relies on.
//
//	file := tracetest.Read(t, path)
//	for _, span := range file.Spans["trainer"]["trainer"] { ... }
package tracetest

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// File is the content of a timeline.
type File struct {
	// Spans holds the spans of each track, in the order of time, by the names of group and track. Tracks without spans
	// are included.
	Spans map[string]map[string][]Span
	// Counters holds the values of each counter that changed.
	Counters map[string][]int
}

// Span is one span. Its times count from the file's time 0.
type Span struct {
	Name         string
	Began, Ended time.Duration
	Args         map[string]int
}

type event struct {
	Ph, Name string
	PID, TID int
	TS, Dur  float64
	Args     map[string]any
}

// Read reads a file, even if its end was never written. It fails the test if a line is not an event, a span is on no
// track or ends before it begins, or spans of a track overlap.
func Read(t testing.TB, path string) File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(string(data))
	if !strings.HasSuffix(text, "]") {
		text += "]"
	}
	var events []event
	if err := json.Unmarshal([]byte(text), &events); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	f := File{Spans: map[string]map[string][]Span{}, Counters: map[string][]int{}}
	groups, tracks := map[int]string{}, map[int]string{}
	for _, e := range events {
		switch e.Ph + " " + e.Name {
		case "M process_name":
			groups[e.PID] = e.Args["name"].(string)
			f.Spans[groups[e.PID]] = map[string][]Span{}
		case "M thread_name":
			tracks[e.TID] = e.Args["name"].(string)
			f.Spans[groups[e.PID]][tracks[e.TID]] = nil
		}
	}
	for _, e := range events {
		group, track := groups[e.PID], tracks[e.TID]
		switch e.Ph {
		case "X":
			if group == "" || track == "" {
				t.Errorf("%+v is on no track", e)
			}
			s := Span{Name: e.Name, Began: nanos(e.TS), Ended: nanos(e.TS) + nanos(e.Dur), Args: map[string]int{}}
			for key, v := range e.Args {
				s.Args[key] = int(v.(float64))
			}
			f.Spans[group][track] = append(f.Spans[group][track], s)
		case "C":
			for key, v := range e.Args {
				f.Counters[e.Name+" "+key] = append(f.Counters[e.Name+" "+key], int(v.(float64)))
			}
		}
	}
	for group, tracks := range f.Spans {
		for track, spans := range tracks {
			check(t, group+", "+track, spans)
		}
	}
	return f
}

func check(t testing.TB, track string, spans []Span) {
	t.Helper()
	slices.SortStableFunc(spans, func(a, b Span) int { return cmp.Compare(a.Began, b.Began) })
	for i, s := range spans {
		if s.Ended < s.Began {
			t.Errorf("%s: %+v ends before it begins", track, s)
		}
		if i > 0 && s.Began < spans[i-1].Ended {
			t.Errorf("%s: %+v overlaps with %+v", track, spans[i-1], s)
		}
	}
}

func nanos(micros float64) time.Duration { return time.Duration(math.Round(micros * 1e3)) }
