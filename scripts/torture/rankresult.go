package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// exited reports whether a rank has ended with one of these statuses.
func (m *member) exited(statuses ...int) bool {
	return m.status().Exited() && slices.Contains(statuses, m.status().ExitStatus())
}

// unexpected says how a rank has ended that should have ended otherwise.
func (m *member) unexpected(rank int) error {
	return fmt.Errorf("rank %d ended with %v: %s", rank, m.cmd.ProcessState, lastLines(strings.Join(m.output, "\n"), 6))
}

// lines is the folder with the lines of a rank.
func (s *site) lines(rank int) string {
	if rank == 0 {
		return s.path("run")
	}
	return filepath.Join(s.path("run"), "ranks", fmt.Sprint(rank))
}

// madeSteps counts the steps in a rank's metrics.jsonl; 0 if it has none yet.
func (s *site) madeSteps(rank int) (int, error) {
	data, err := os.ReadFile(filepath.Join(s.lines(rank), "metrics.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	return bytes.Count(data, []byte("\n")), err
}

// takeRanks takes the lines of other ranks than the first out of a result. They are those of rank 0, without some
// before the fault: a rank that is killed has not written its last ones, and what rank 0 has saved after the fault can
// be a step or an evaluation that another rank has not come to. trained says that the last start has made a step: then
// all ranks have the last line.
func takeRanks(r *result, trained bool) (err error) {
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		if !strings.HasPrefix(name, "ranks/") {
			continue
		}
		own, lead := r.files[name], r.files[path.Base(name)]
		delete(r.files, name)
		if base := path.Base(name); base != "metrics.jsonl" && base != "eval.jsonl" {
			continue
		}
		for _, line := range own {
			i := slices.Index(lead, line)
			if i < 0 {
				err = errors.Join(err, fmt.Errorf("%s: rank 0 does not have the line %s", name, line))
				break
			}
			lead = lead[i+1:]
		}
		if len(lead) > 0 && (trained || path.Base(name) != "metrics.jsonl") {
			err = errors.Join(err, fmt.Errorf("%s does not have the last line of rank 0, %s", name, lead[len(lead)-1]))
		}
	}
	return err
}

// checkRows checks that a run of so many ranks has used every row once. Each has a ledger of its own rows. One of a
// rank that was not there from the beginning does not have all steps.
func (s *site) checkRows(ranks int) error {
	type batches struct {
		Step    int              `json:"step"`
		Batches []map[string]any `json:"batches"`
	}
	all := make([]batches, roundSteps)
	for rank := range ranks {
		file, err := os.ReadFile(s.path(filepath.Join("debug", fmt.Sprint(rank), "ledger.jsonl")))
		if err != nil {
			return err
		}
		lines := slices.Collect(bytes.Lines(file))
		if len(lines) != roundSteps {
			return nil // the number of ranks has changed
		}
		for i, line := range lines {
			var own batches
			if err := json.Unmarshal(line, &own); err != nil {
				return fmt.Errorf("ledger of rank %d, line %d: %w", rank, i+1, err)
			}
			if all[i].Step = own.Step; rank == 0 {
				all[i].Batches = own.Batches
				continue
			}
			if len(own.Batches) != len(all[i].Batches) {
				return fmt.Errorf("ledger, step %d: rank %d has %d batches", own.Step, rank, len(own.Batches))
			}
			for b := range own.Batches {
				to := all[i].Batches[b]
				to["rows"] = append(to["rows"].([]any), own.Batches[b]["rows"].([]any)...)
			}
		}
	}
	var lines []string
	for _, b := range all {
		line, err := json.Marshal(b)
		if err != nil {
			return err
		}
		lines = append(lines, string(line))
	}
	return checkLedger(lines, roundSteps)
}

// tolerance is the relative difference between runs of different numbers of ranks, which round sums differently.
const tolerance = 1e-5

// nearly compares a run with one of another number of ranks.
func nearly(want, got string) error {
	var errs []error
	for _, name := range []string{"metrics.jsonl", "eval.jsonl"} {
		errs = append(errs, nearLines(filepath.Join(want, "run", name), filepath.Join(got, "run", name)))
	}
	file := filepath.Join("run", "checkpoints", fmt.Sprintf("step-%06d", roundSteps), "params.safetensors")
	a, err := weights(filepath.Join(want, file))
	errs = append(errs, err)
	b, err := weights(filepath.Join(got, file))
	errs = append(errs, err)
	if len(a) != len(b) || len(a) == 0 {
		errs = append(errs, fmt.Errorf("%d and %d weights", len(a), len(b)))
	} else if d := distance(a, b); !(d <= tolerance) {
		errs = append(errs, fmt.Errorf("the weights differ by %.2g of their norm", d))
	}
	return errors.Join(errs...)
}

func nearLines(want, got string) error {
	var lines [2][]map[string]any
	for i, file := range []string{want, got} {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(data) {
			var v map[string]any
			if err := json.Unmarshal(line, &v); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, key := range clocks {
				delete(v, key)
			}
			lines[i] = append(lines[i], v)
		}
	}
	if len(lines[0]) != len(lines[1]) {
		return fmt.Errorf("%s has %d lines, not %d", got, len(lines[1]), len(lines[0]))
	}
	for i, line := range lines[0] {
		for _, key := range slices.Sorted(maps.Keys(line)) {
			a, isNumber := line[key].(float64)
			b, _ := lines[1][i][key].(float64)
			if isNumber && !(math.Abs(a-b) <= tolerance*math.Max(math.Abs(a), 1e-3)) {
				return fmt.Errorf("%s, line %d: %s is %v, not %v", got, i+1, key, b, a)
			}
		}
	}
	return nil
}

// weights reads the numbers of a safetensors file of f32.
func weights(file string) ([]float64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	data = data[8+binary.LittleEndian.Uint64(data):]
	all := make([]float64, len(data)/4)
	for i := range all {
		all[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
	}
	return all, nil
}

func distance(a, b []float64) float64 {
	var difference, norm float64
	for i, v := range a {
		difference += (v - b[i]) * (v - b[i])
		norm += v * v
	}
	return math.Sqrt(difference / norm)
}

// timings are times after faults, by what they are of.
type timings map[string][]time.Duration

func (t timings) add(more timings) {
	for what, times := range more {
		t[what] = append(t[what], times...)
	}
}

// String is a table of their distribution.
func (t timings) String() string {
	text := fmt.Sprintf("%-56s%6s%10s%10s%10s%10s\n", "after the fault", "times", "least", "median", "9 of 10", "most")
	for _, what := range slices.Sorted(maps.Keys(t)) {
		sorted := slices.Sorted(slices.Values(t[what]))
		text += fmt.Sprintf("%-56s%6d", what, len(sorted))
		for _, i := range []int{0, len(sorted) / 2, len(sorted) * 9 / 10, len(sorted) - 1} {
			text += fmt.Sprintf("%7d ms", sorted[i].Milliseconds())
		}
		text += "\n"
	}
	return text
}
