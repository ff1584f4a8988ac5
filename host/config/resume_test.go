package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// makeFolders makes the working directory of a test with these folders in it.
func makeFolders(t *testing.T, folders ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for _, dir := range folders {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSplitRun(t *testing.T) {
	makeFolders(t, "run", "me@home", "a@b@best")
	for _, tt := range []struct{ name, run, at string }{
		{"run", "run", ""},
		{"run@best", "run", "best"},
		{"run@1200", "run", "1200"},
		{"me@home", "me@home", ""},
		{"me@home@last", "me@home", "last"},
		{"a@b@best", "a@b@best", ""},
		{"run@", "run@", ""},
		{"@best", "@best", ""},
		{"", "", ""},
	} {
		if run, at := SplitRun(tt.name); run != tt.run || at != tt.at {
			t.Errorf("%s: %q at %q, want %q at %q", tt.name, run, at, tt.run, tt.at)
		}
	}
}

// TestResumeOrStart resumes what has a checkpoint, and starts all else.
func TestResumeOrStart(t *testing.T) {
	step := filepath.Join("checkpoints", "step-000004")
	makeFolders(t, filepath.Join("saved", step), filepath.Join("killed", step+".old"), filepath.Join("begun", step+".tmp"), "empty")
	for _, tt := range []struct {
		run    string
		resume bool
	}{{"saved", true}, {"killed", true}, {"begun", false}, {"empty", false}, {"new", false}} {
		s := New()
		if err := s.Parse([]string{"--resume-or-start", tt.run, "--init", "weights"}, []string{"XTTS_HOST_RUN_DIR=other"}); err != nil {
			t.Fatal(err)
		}
		want := Config{RunDir: tt.run, Init: "weights"}
		if tt.resume {
			want = Config{Resume: tt.run}
		}
		if s.Resume != want.Resume || s.RunDir != want.RunDir || s.Init != want.Init {
			t.Errorf("%s: resume %q, run-dir %q, init %q, want %+v", tt.run, s.Resume, s.RunDir, s.Init, want)
		}
	}
	if err := os.WriteFile("file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := New().Parse([]string{"--resume-or-start", "file"}, nil); err == nil {
		t.Error("a file is taken for a run")
	}
}

// TestStepsAlone: who gives --max-steps and no --epochs has no end by epochs, also in a run that is resumed.
func TestStepsAlone(t *testing.T) {
	makeFolders(t, "run")
	for _, tt := range []struct {
		run, args string
		epochs    int
	}{
		{"", "", 100},
		{"", "--max-steps 10000", 0},
		{"", "--max-steps 0", 100},
		{"", "--max-steps 10000 --epochs 3", 3},
		{"epochs: 100\nmax_steps: 10000\n", "--resume run", 100}, // as versions before wrote it
		{"epochs: 0\nmax_steps: 10000\n", "--resume run", 0},
		{"epochs: 100\nmax_steps: 0\n", "--resume run --max-steps 20000", 0},
		{"epochs: 0\nmax_steps: 10000\n", "--resume run --epochs 7", 7},
	} {
		if err := os.WriteFile(filepath.Join("run", RunFile), []byte(tt.run), 0o666); err != nil {
			t.Fatal(err)
		}
		s := New()
		if err := s.Parse(strings.Fields(tt.args), nil); err != nil || s.Epochs != tt.epochs {
			t.Errorf("%q with %q: %d epochs, want %d; %v", tt.args, tt.run, s.Epochs, tt.epochs, err)
		}
	}
}
