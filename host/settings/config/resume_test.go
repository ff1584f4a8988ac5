package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
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
		{"/mnt/me@host/run", "/mnt/me@host/run", ""},
		{"/mnt/me@host/run@4", "/mnt/me@host/run", "4"},
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
	makeFolders(t, filepath.Join("saved", step), filepath.Join("killed", step+".old"),
		filepath.Join("begun", step+".tmp"), "empty")
	for _, tt := range []struct {
		run    string
		resume bool
	}{{"saved", true}, {"killed", true}, {"begun", false}, {"empty", false}, {"new", false}} {
		s := New()
		if err := s.Parse([]string{"--resume-or-start", tt.run, "--init", "weights"}, []string{
			"XTTS_HOST_RUN_DIR=other",
		}); err != nil {
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

// TestNotARun: what cannot be resumed is refused before anything else is looked at, with its name, the reason and a
// hint.
func TestNotARun(t *testing.T) {
	makeFolders(t, "run/checkpoints/step-001200", "empty")
	if err := os.WriteFile("file", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	const name = "name the folder that a run has written, which holds checkpoints"
	for _, tt := range []struct{ flag, run, says, hint string }{
		{"resume", "nowhere", "--resume nowhere: there is no such folder", name},
		{"resume", "nowhere@best", "--resume nowhere: there is no such folder", name},
		{"resume", "file", "--resume file: that is a file, not the folder of a run", name},
		{"resume", "file/run", "--resume file/run: stat file/run: not a directory", name},
		{
			"resume", "empty", "--resume empty: not the folder of a run: neither checkpoints nor config.yaml is there",
			name,
		},
		{
			"resume", "run/checkpoints/step-001200/",
			"--resume run/checkpoints/step-001200/: a checkpoint, not the folder of a run",
			"name the run and the checkpoint: --resume run@1200",
		},
		{"resume-or-start", "run@1200", "--resume-or-start run@1200: it continues from the last checkpoint only",
			"go back to that checkpoint with --resume run@1200, or name the run: --resume-or-start run"},
		{"resume-or-start", "run@best", "--resume-or-start run@best: it continues from the last checkpoint only",
			"go back to that checkpoint with --resume run@best, or name the run: --resume-or-start run"},
	} {
		err := New().Parse([]string{"--" + tt.flag, tt.run, "--plugins", "nowhere"}, nil)
		if err == nil || err.Error() != tt.says || hint.Of(err) != tt.hint {
			t.Errorf("error: %v\nhint: %s\nwant: %s\nhint: %s", err, hint.Of(err), tt.says, tt.hint)
		}
	}
	s := New()
	s.ResumeFlag, s.Resume = "--run", "nowhere"
	if err := s.Load(nil); err == nil || !strings.HasPrefix(err.Error(), "--run nowhere: ") {
		t.Error(err)
	}
	if err := New().Parse([]string{"--resume-or-start", "me@home"}, nil); err != nil {
		t.Error(err) // a name with @ that is no checkpoint's
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
		if err := os.WriteFile(filepath.Join("run", rundir.SettingsFile), []byte(tt.run), 0o666); err != nil {
			t.Fatal(err)
		}
		s := New()
		if err := s.Parse(strings.Fields(tt.args), nil); err != nil || s.Epochs != tt.epochs {
			t.Errorf("%q with %q: %d epochs, want %d; %v", tt.args, tt.run, s.Epochs, tt.epochs, err)
		}
	}
}

// TestRestart: a run that ended before its first checkpoint starts again with the model and the data that it had, or
// with others that are named, but not without any.
func TestRestart(t *testing.T) {
	const run = "a run"
	makeFolders(t, run)
	write := func(args ...string) {
		t.Helper()
		s := New()
		if err := s.Parse(args, nil); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(run, rundir.SettingsFile), []byte(s.RunYAML()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	write("--train-data", "ü.jsonl", "--init", `a "b"`, "--lr", "0.5")
	data, weights := filepath.Join(here, "ü.jsonl"), filepath.Join(here, `a "b"`)
	err = New().Parse([]string{"--resume-or-start", run}, nil)
	want := "--resume-or-start a run: the run there ended before its first checkpoint, and had train_data: " + data +
		", init: " + weights
	if err == nil || err.Error() != want {
		t.Fatalf("%v, want %s", err, want)
	}
	config := filepath.Join(run, rundir.SettingsFile)
	advice := hint.Of(err)
	if advice != "give them again: --train-data "+hint.Path(data)+" --init "+hint.Path(weights)+"; --config "+
		hint.Path(config)+" gives the other settings" {
		t.Error(advice)
	}
	for _, args := range [][]string{
		{"--train-data", "other", "--init", "other"}, {"--config", config, "--init", weights},
	} {
		s := New()
		if err := s.Parse(append(args, "--resume-or-start", run), nil); err != nil {
			t.Errorf("%q: %v", args, err)
		} else if s.RunDir != run || s.Init == "" {
			t.Errorf("%q: run folder %q, weights %q", args, s.RunDir, s.Init)
		}
	}
	for _, args := range [][]string{{"--train-data", "other"}, {"--config", config}} { // without --init
		err := New().Parse(append(args, "--resume-or-start", run), nil)
		if err == nil || !strings.HasSuffix(err.Error(), "and had init: "+weights) {
			t.Errorf("%q: %v", args, err)
		}
	}
	write("--lr", "0.5") // the sample, with another rate
	if err := New().Parse([]string{"--resume-or-start", run}, nil); err != nil {
		t.Error(err)
	}
}

// TestRunOfSeveralGPUs: a run trains on its GPUs again, and a command that reads it computes on the first.
func TestRunOfSeveralGPUs(t *testing.T) {
	makeFolders(t, "run")
	if err := os.WriteFile(filepath.Join("run", rundir.SettingsFile), []byte("model_gpu: 2,3\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ flag, given, model, data string }{
		{"--resume", "", "2,3", ""}, {"--run", "", "2", "cpu"}, {"--run", "1", "1", ""},
	} {
		s := New()
		s.ResumeFlag, s.Resume = tt.flag, "run"
		var environ []string
		if tt.given != "" {
			environ = []string{"XTTS_HOST_MODEL_GPU=" + tt.given}
		}
		if err := s.Load(environ); err != nil {
			t.Fatal(err)
		}
		if string(s.ModelGPU) != tt.model || string(s.DataGPU) != tt.data {
			t.Errorf("%s, %q given: model %s, data %s", tt.flag, tt.given, s.ModelGPU, s.DataGPU)
		}
	}
}
