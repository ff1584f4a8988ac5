package rundir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/files"
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

// TestSteps: only folders with the names of steps are those of steps, in the order of their numbers.
func TestSteps(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"step-1000000", "step-000020", "step-000003", "step-7", "other"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "step-000009"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("step-000003", filepath.Join(dir, "step-000010")); err != nil {
		t.Fatal(err)
	}
	at := files.In(dir)
	for _, c := range []struct {
		after int64
		want  []int64
	}{{1_000_000, []int64{3, 20, 1_000_000}}, {20, []int64{3, 20}}, {0, nil}} {
		if err := RemoveAfter(at, c.after); err != nil {
			t.Fatal(err)
		}
		if got, err := Steps(at); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("after %d: %v, %v, want %v", c.after, got, err, c.want)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "step-000009")); err != nil {
		t.Error(err)
	}
	if got, err := Steps(at.Join("nowhere")); got != nil || err != nil {
		t.Errorf("%v, %v", got, err)
	}
}
