package rundir

import (
	"os"
	"path/filepath"
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]struct {
		step        int64
		parsed, old bool // by ParseStep, and by StepOf
	}{
		"step-000001":     {1, true, true},
		"step-1234567":    {1234567, true, true},
		"step-1":          {},
		"step-+00001":     {},
		"step--00001":     {},
		"step-000001.old": {1, false, true},
		"best":            {},
	} {
		if step, ok := ParseStep(name); ok != want.parsed || ok && (step != want.step || Step(step) != name) {
			t.Errorf("ParseStep(%q) = %d, %v", name, step, ok)
		}
		if step, ok := StepOf(name); ok != want.old || ok && step != want.step {
			t.Errorf("StepOf(%q) = %d, %v", name, step, ok)
		}
	}
	for name, want := range map[string]bool{
		"best": true, "last": true, "1200": true, "0": true, "+5": false, "-1": false, "": false, "step-000001": false,
	} {
		if IsCheckpoint(name) != want {
			t.Errorf("IsCheckpoint(%q) is not %v", name, want)
		}
	}
}

func TestNaNFile(t *testing.T) {
	for name, want := range map[string]int64{
		"nan-step-000001.json": 1, "nan-step-1234567.json": 1_234_567, "nan-step-1.json": -1, "step-000001.json": -1,
		"nan-step-000001": -1, "step-000001": -1,
	} {
		if step, ok := ParseNaNFile(name); ok != (want >= 0) || ok && (step != want || NaNFile(step) != name) {
			t.Errorf("ParseNaNFile(%q) = %d, %v", name, step, ok)
		}
	}
}

func TestSplitCheckpoint(t *testing.T) {
	for path, want := range map[string][2]string{
		"run/checkpoints/step-001200": {"run", "1200"}, "run/checkpoints/step-001200/": {"run", "1200"},
		"run/step-001200": {}, "run": {},
	} {
		if run, at := SplitCheckpoint(path); run != want[0] || at != want[1] {
			t.Errorf("SplitCheckpoint(%q) = %q, %q", path, run, at)
		}
	}
}

func TestHasCheckpoints(t *testing.T) {
	run := t.TempDir()
	has := func(want bool) {
		t.Helper()
		if got, err := HasCheckpoints(run); got != want || err != nil {
			t.Errorf("%v, %v, want %v", got, err, want)
		}
	}
	has(false) // no folder
	for _, name := range []string{"step-1", "step-000002.tmp", "step-000003.old"} {
		if err := os.MkdirAll(filepath.Join(run, Checkpoints, name), 0o755); err != nil {
			t.Fatal(err)
		}
		has(name == "step-000003.old") // what was to replace it may not have come
	}
	file := filepath.Join(run, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := HasCheckpoints(file); err == nil {
		t.Error("a file is a run")
	}
}
