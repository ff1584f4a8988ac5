package report

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func TestQuarantine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine.jsonl")
	open := func() *Quarantine {
		t.Helper()
		q, err := OpenQuarantine(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { q.Close() })
		return q
	}
	add := func(q *Quarantine, id string, want bool) {
		t.Helper()
		added, err := q.Add(Quarantined{
			ID: id, Path: "wavs/" + id + ".wav", Reason: "data chunk <2 samples", Stage: "decode", Split: Train,
		})
		if err != nil || added != want {
			t.Errorf("row %s: added %v, %v; want %v", id, added, err, want)
		}
	}
	q := open()
	add(q, "LJ001-0001", true)
	add(q, "LJ001-0002", true)
	add(q, "LJ001-0001", false)
	want := `{"id":"LJ001-0001","path":"wavs/LJ001-0001.wav","reason":"data chunk <2 samples","stage":"decode","split":"train"}
{"id":"LJ001-0002","path":"wavs/LJ001-0002.wav","reason":"data chunk <2 samples","stage":"decode","split":"train"}
`
	if got := read(t, path); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}

	if added, err := q.Add(Quarantined{
		ID: "LJ001-0001", Reason: "in two lists", Split: Validation,
	}); !added || err != nil || q.Count() != 3 {
		t.Errorf("the row of the other list: added %v, %v; %d rows", added, err, q.Count())
	}
	write(t, path, want+`{"id":"LJ0`) // killed
	q = open()
	add(q, "LJ001-0002", false)
	add(q, "LJ001-0003", true)
	if got := read(t, path); q.Count() != 3 || strings.Count(got, "\n") != 3 || !strings.HasPrefix(got, want) {
		t.Errorf("%d rows, file\n%s", q.Count(), got)
	}

	write(t, path, "{}\n")
	if _, err := OpenQuarantine(path, nil); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a line without an id: %v", err)
	}
}

func TestQuarantineFromManyWorkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine.jsonl")
	q, err := OpenQuarantine(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for i := range 50 {
				if _, err := q.Add(Quarantined{ID: fmt.Sprint(i), Reason: "broken"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := strings.Count(read(t, path), "\n"); n != 50 || q.Count() != 50 {
		t.Errorf("%d lines, count %d; want 50", n, q.Count())
	}
}

// A line that a resumed run would refuse is refused when it is written.
func TestQuarantineLongLine(t *testing.T) {
	q, err := OpenQuarantine(filepath.Join(t.TempDir(), "quarantine.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	_, err = q.Add(Quarantined{ID: "a", Reason: strings.Repeat("r", maxLine)})
	if err == nil || !strings.Contains(err.Error(), "above the limit of 65536") {
		t.Errorf("Add: %v", err)
	}
}
