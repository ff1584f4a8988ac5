package batch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// quarantineData has so many rows and rejected lines.
func quarantineData(rows, rejected int) Data {
	ix := &dataset.Index{List: "metadata.csv", Rows: make([]dataset.Row, rows)}
	for i := range rejected {
		ix.Rejected = append(ix.Rejected, dataset.Rejected{Line: i + 1, Reason: "no '|' between id and text"})
	}
	return Data{Train: &Split{Name: report.Train, Index: ix, Plan: new(dataset.Plan)}}
}

func TestQuarantineLimit(t *testing.T) {
	for _, tt := range []struct{ rows, rejected, limit, more, allowed int }{
		{24, 0, -1, 2, 1},   // 1 %, at least one row
		{500, 0, -1, 6, 5},  // 1 %
		{24, 0, 3, 4, 3},    // as given
		{24, 0, 0, 1, 0},    // none
		{24, 2, 3, 2, 1},    // what the index rejected counts
		{24, 2, 100, 9, 99}, // far below the limit
	} {
		q, err := OpenQuarantine(filepath.Join(t.TempDir(), "quarantine.jsonl"), quarantineData(tt.rows, tt.rejected),
			tt.limit, nil, nil)
		if err != nil {
			t.Errorf("%+v: %v", tt, err)
			continue
		}
		for i := range tt.more {
			err := q.add(report.Quarantined{
				ID: fmt.Sprint(i), Path: "x.wav", Reason: "torn", Stage: "decode", Split: report.Train,
			})
			if over := i >= tt.allowed; over != errors.Is(err, ErrQuarantine) || over != (err != nil) {
				t.Errorf("%+v: row %d: %v", tt, i+1, err)
			}
		}
		if q.Count() != tt.rejected+tt.more {
			t.Errorf("%+v: %d rows counted", tt, q.Count())
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	path := filepath.Join(t.TempDir(), "quarantine.jsonl")
	_, err := OpenQuarantine(path, quarantineData(24, 2), -1, nil, nil)
	if !errors.Is(err, ErrQuarantine) ||
		!strings.Contains(err.Error(), "too many unusable rows: 2 in the training data, but --max-quarantine allows "+
			"1; the last is metadata.csv:2: no '|'") ||
		hint.Of(err) == "" {
		t.Errorf("%v, hint %q", err, hint.Of(err))
	}
	if data, _ := os.ReadFile(path); strings.Count(string(data), "\n") != 2 {
		t.Errorf("the rows that were too many are not written down:\n%s", data)
	}
}

// TestQuarantineListsAllThatTheIndexRejected: in one go, also if the first of them are too many; without a file, the
// hint names none.
func TestQuarantineListsAllThatTheIndexRejected(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine.jsonl")
	for _, path := range []string{path, ""} {
		_, err := OpenQuarantine(path, quarantineData(32, 12), -1, nil, nil)
		if !errors.Is(err, ErrQuarantine) || !strings.Contains(
			err.Error(), "12 in the training data, but --max-quarantine allows 1; the last is metadata.csv:12:",
		) {
			t.Errorf("%v", err)
		}
		if named := strings.Contains(hint.Of(err), "quarantine.jsonl"); named != (path != "") {
			t.Errorf("path %q: hint %q", path, hint.Of(err))
		}
	}
	if data, _ := os.ReadFile(path); strings.Count(string(data), "\n") != 12 {
		t.Errorf("the file has not all 12:\n%s", data)
	}
}

// TestQuarantineOfTwoLists checks that a clip that two lists name counts in each, against a limit of each.
func TestQuarantineOfTwoLists(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine.jsonl")
	d := quarantineData(24, 0)
	d.Val = &Split{
		Name: report.Validation, Index: &dataset.Index{Rows: make([]dataset.Row, 6)}, Plan: new(dataset.Plan),
	}
	q, err := OpenQuarantine(path, d, -1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	for _, split := range []string{report.Train, report.Validation, report.Train} {
		if err := q.add(report.Quarantined{ID: "a", Reason: "torn", Stage: "decode", Split: split}); err != nil {
			t.Error(err)
		}
	}
	if q.Count() != 2 {
		t.Errorf("%d rows counted, want 2", q.Count())
	}
	err = q.add(report.Quarantined{ID: "b", Reason: "torn", Stage: "decode", Split: report.Validation})
	if !errors.Is(err, ErrQuarantine) ||
		!strings.Contains(err.Error(), "2 in the validation data, but --max-quarantine allows 1") {
		t.Errorf("one more in the validation data: %v", err)
	}
	if data, _ := os.ReadFile(path); strings.Count(string(data), "\n") != 3 {
		t.Errorf("not three lines:\n%s", data)
	}
}

// TestQuarantineListsWhatTrainingPassed checks that a checkpoint does not depend on how far ahead rows were found.
func TestQuarantineListsWhatTrainingPassed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine.jsonl")
	d := quarantineData(24, 0)
	d.Train.bad = new(dataset.Quarantine)
	d.Train.Index.Rows[5].ID = "old"
	var said []string
	q, err := OpenQuarantine(path, d, 9, nil, func(text string, _ ...any) { said = append(said, text) })
	if err != nil {
		t.Fatal(err)
	}
	q.Restore(map[string]string{"old": "torn"}, d.Train)
	if !d.Train.bad.Has(5) || d.Train.bad.Has(4) {
		t.Errorf("left out after a resume: %v", d.Train.bad.Rows())
	}
	for _, id := range []string{"a", "b", "a", "old"} { // twice: as a row and as another row's reference
		if err := q.add(report.Quarantined{
			ID: id, Path: id + ".wav", Reason: "torn", Stage: "decode", Split: report.Train,
		}); err != nil {
			t.Fatal(err)
		}
	}
	if want := []string{
		"clip a of the training data cannot be used and is left out: torn (quarantine.jsonl names it, " +
			"and those that follow)",
	}; !slices.Equal(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	q.Trained("b")
	if passed := q.List(); len(passed) != 2 || passed["old"] != "torn" || passed["b"] != "torn" {
		t.Errorf("a checkpoint lists %v", passed)
	}
	if q.Count() != 3 {
		t.Errorf("%d rows counted, want 3", q.Count())
	}
	q.mu.Lock() // as a worker that writes a line
	if q.Count() != 3 {
		t.Error("a count depends on the lock")
	}
	q.mu.Unlock()
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	if data, _ := os.ReadFile(path); strings.Count(string(data), "\n") != 2 {
		t.Errorf("a and b have a line each, old has that of the run before:\n%s", data)
	}
}

// TestQuarantineOfUntrustedText checks that what lists, recordings and stages wrote is neither too long to be read
// again nor steers a terminal.
func TestQuarantineOfUntrustedText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "quarantine.jsonl")
	q, err := OpenQuarantine(path, quarantineData(24, 0), 0, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	row := report.Quarantined{
		ID: "a", Path: strings.Repeat("p", 1<<20), Reason: "\x1b[1m\nerror: " + strings.Repeat("\u00e9", 1<<19),
		Stage: "decode", Split: report.Train,
	}
	err = q.add(row)
	if !errors.Is(err, ErrQuarantine) || strings.ContainsAny(err.Error(), "\x1b\n") {
		t.Errorf("add: %q", err)
	}
	q.Trained("a")
	want := `\x1b[1m\nerror: ` + strings.Repeat("\u00e9", 490) + "\u2026" // one byte is left
	if list := q.List(); len(list) != 1 || list["a"] != want {
		t.Errorf("%q", list)
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
	again, err := report.OpenQuarantine(path, nil)
	if err != nil || again.Count() != 1 {
		t.Fatal(again, err)
	}
	again.Close()
}
