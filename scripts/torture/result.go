package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// result is the content of a run folder without times, by file name relative to the run folder, and the ledger.
type result struct {
	files map[string][]string // lines, or a checksum; nil if it may differ
}

// clocks are the keys whose values are times.
var clocks = []string{"step_ms", "input_wait_ms", "eval_ms"}

// different are files about the process, not about the training.
var different = []string{"log.jsonl", "report.json", "report.txt", "report.html", "config.yaml"}

func (s *site) result() (*result, error) {
	r, err := s.files()
	if err == nil {
		err = r.read("ledger", filepath.Join(s.path("debug"), "ledger.jsonl"))
	}
	if err == nil {
		err = checkLedger(r.files["ledger"], steps)
	}
	if err == nil {
		err = s.reportIsDone(steps)
	}
	return r, err
}

// files reads the run folder.
func (s *site) files() (*result, error) {
	r := &result{files: map[string][]string{}}
	err := filepath.WalkDir(s.path("run"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "tensorboard" {
			return filepath.SkipDir // a resumed run has other files there; its tests read them
		}
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(s.path("run"), path)
		if err != nil {
			return err
		}
		return r.read(name, path)
	})
	return r, err
}

// read reads a file.
func (r *result) read(name, path string) error {
	data, err := os.ReadFile(path)
	switch {
	case err != nil:
		return err
	case slices.Contains(different, filepath.Base(name)):
		r.files[name] = nil
	case filepath.Ext(path) != ".jsonl":
		r.files[name] = []string{fmt.Sprintf("%d bytes, sha256 %x", len(data), sha256.Sum256(data))}
	default:
		r.files[name], err = withoutClocks(data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// withoutClocks returns the lines of a JSONL file without times. Numbers keep all their digits.
func withoutClocks(data []byte) ([]string, error) {
	lines := []string{}
	for line := range bytes.Lines(data) {
		var v map[string]json.RawMessage
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("line %d: %w", len(lines)+1, err)
		}
		for _, key := range clocks {
			delete(v, key)
		}
		text, err := json.Marshal(v)
		if err != nil {
			return nil, err
		}
		lines = append(lines, string(text))
	}
	return lines, nil
}

// reported is what report.json says of the last start.
type reported struct {
	Outcome   string
	Steps     int
	ResumedAt int `json:"resumed_at"`
}

func (s *site) report() (r reported, err error) {
	data, err := os.ReadFile(filepath.Join(s.path("run"), "report.json"))
	if err == nil {
		err = json.Unmarshal(data, &r)
	}
	if err != nil {
		return r, fmt.Errorf("report.json: %w", err)
	}
	return r, nil
}

// reportIsDone checks the only file that cannot be compared.
func (s *site) reportIsDone(steps int) error {
	report, err := s.report()
	if err == nil && (report.Outcome != "done" || report.Steps != steps) {
		return fmt.Errorf("report.json says %q after %d steps", report.Outcome, report.Steps)
	}
	return err
}

// lastCheckpoint returns the result without the checkpoints before the last.
func (r *result) lastCheckpoint(steps int) *result {
	files := maps.Clone(r.files)
	maps.DeleteFunc(files, func(name string, _ []string) bool {
		return strings.HasPrefix(name, "checkpoints/step-") &&
			!strings.HasPrefix(name, fmt.Sprintf("checkpoints/step-%06d/", steps))
	})
	return &result{files}
}

// compare returns the difference from an undisturbed run.
func (r *result) compare(ref *result) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(ref.files)) {
		if _, ok := r.files[name]; !ok {
			errs = append(errs, fmt.Errorf("%s is missing", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		want, ok := ref.files[name]
		got := r.files[name]
		switch {
		case !ok:
			errs = append(errs, fmt.Errorf("%s is left over", name))
		case len(got) != len(want):
			errs = append(errs, fmt.Errorf("%s has %d lines, undisturbed run: %d", name, len(got), len(want)))
		default:
			for i := range got {
				if got[i] != want[i] {
					errs = append(errs, fmt.Errorf("%s, line %d: %s, undisturbed run: %s", name, i+1, got[i], want[i]))
					break
				}
			}
		}
	}
	return errors.Join(errs...)
}

// checkLedger checks that a run used every row exactly once where it should. It needs no other run to compare with.
// Steps follow each other, and so do batches within an epoch. An epoch has no row twice, and all complete epochs have
// the same rows.
func checkLedger(lines []string, steps int) error {
	epoch, next := 0, 0
	seen := map[string]bool{}
	var whole map[string]bool // of the first epoch
	for i, line := range lines {
		var v struct {
			Step    int
			Batches []struct {
				Epoch, Index int
				Rows         []string
			}
		}
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			return fmt.Errorf("ledger, line %d: %w", i+1, err)
		}
		if v.Step != i+1 || len(v.Batches) == 0 {
			return fmt.Errorf("ledger, line %d: step %d with %d batches", i+1, v.Step, len(v.Batches))
		}
		for _, b := range v.Batches {
			if b.Epoch == epoch+1 && b.Index == 0 {
				if whole != nil && !maps.Equal(whole, seen) {
					return fmt.Errorf("ledger: epoch %d has %d rows, or others than epoch 0, which has %d", epoch,
						len(seen), len(whole))
				}
				whole, seen = seen, map[string]bool{}
				epoch, next = epoch+1, 0
			}
			if b.Epoch != epoch || b.Index != next {
				return fmt.Errorf("ledger, step %d: batch (%d, %d), not (%d, %d)", v.Step, b.Epoch, b.Index, epoch,
					next)
			}
			next++
			for _, id := range b.Rows {
				if id != "" && seen[id] {
					return fmt.Errorf("ledger, step %d: row %s occurs twice in epoch %d", v.Step, id, epoch)
				}
				seen[id] = true
			}
			delete(seen, "")
		}
	}
	if len(lines) != steps {
		return fmt.Errorf("ledger: %d steps, not %d", len(lines), steps)
	}
	return nil
}

// clean returns what a finished run has left outside its folder.
func (s *site) clean() error {
	if err := s.noProcess(); err != nil {
		return err
	}
	for _, dir := range []string{"tmp", "home"} {
		entries, err := os.ReadDir(s.path(dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			return fmt.Errorf("%s is left over", filepath.Join(s.path(dir), e.Name()))
		}
	}
	return nil
}
