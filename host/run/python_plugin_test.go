package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
)

// pythonGain is a plugin on the Python SDK, which shares no line with the host: it was written from
// docs/plugin-protocol.md.
const pythonGain = "../../plugins/testdata/python/gain"

// python puts the interpreter of the tests' own environment first in PATH, where the plugin's argv finds it.
func python(t testing.TB) {
	t.Helper()
	bin, err := filepath.Abs("../../.cache/venv-plugin/bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(bin), "ready")); err != nil {
		t.Fatalf("no Python with gRPC and numpy; this makes it: scripts/venv-plugin.sh (%v)", err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}

// pythonPlugins is a folder with the features plugin and the Python one.
func pythonPlugins(t *testing.T) string {
	t.Helper()
	python(t)
	dir := t.TempDir()
	if err := os.Symlink(filepath.Join(plugins, "features"), filepath.Join(dir, "features")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "gain"), os.DirFS(pythonGain)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// gainPipeline writes a config file with the pipeline of pico after an instance of gain.
func gainPipeline(t *testing.T, probability, db float64) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(pico, "bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	var bundle struct{ Pipeline []any }
	if err := json.Unmarshal(data, &bundle); err != nil {
		t.Fatal(err)
	}
	gain := map[string]any{
		"name": "gain", "stage": "gain",
		"inputs":  map[string]string{"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
		"outputs": map[string]string{"waveform": "waveform"},
		"config":  map[string]float64{"probability": probability, "db": db},
	}
	data, err = json.Marshal(map[string]any{"pipeline": append([]any{gain}, bundle.Pipeline...)})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// served returns how many calls the Python plugin answered in a run, and how often it was started again.
func served(t *testing.T, dir string) (calls, restarts int) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile))
	if err != nil {
		t.Fatal(err)
	}
	var r struct {
		Plugins []struct {
			ID              string
			Calls, Restarts int
		}
	}
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	for _, p := range r.Plugins {
		if p.ID == "python-gain" {
			return p.Calls, p.Restarts
		}
	}
	t.Fatalf("%s: the report does not name the plugin: %+v", dir, r)
	return 0, 0
}

// TestOldPythonPlugin: a plugin whose SDK has only protocol 1 gets no sources, and the losses are the same.
func TestOldPythonPlugin(t *testing.T) {
	folder, config := pythonPlugins(t), gainPipeline(t, 0.5, 12)
	flags := []string{"--plugins", folder, "--config", config, "--max-steps", "3", "--eval-every", "2"}
	program := filepath.Join(folder, "gain", "plugin.py")
	editFile(t, program, "row.report(louder=louder)", `row.report(louder=louder, clip=row.source.clip)`)
	now := mustTrain(t, flags...) // fails unless the host sends sources
	editFile(t, program, "row.report(louder=louder, clip=row.source.clip)", `assert row.source is None`)
	editFile(t, program, "serve(gain=Gain)", "from xtts_plugin import serving\n"+
		"    serving.version = lambda: 1  # whatever the host offers\n    serve(gain=Gain)")
	old := mustTrain(t, flags...)
	if want := losses(t, now); len(want) == 0 || !slices.Equal(want, losses(t, old)) {
		t.Errorf("losses %q with protocol 1, %q with protocol 2", losses(t, old), want)
	}
}

func TestPythonPlugin(t *testing.T) {
	flags := append(slices.Clone(reference), "--plugins", pythonPlugins(t))
	train := func(t *testing.T, more ...string) string {
		t.Helper()
		dir := mustTrain(t, append(slices.Clone(flags), more...)...)
		if left := children(t); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
		return dir
	}
	plain := referenceRun(t)
	// Half the rows: other processes must draw the same half.
	config := gainPipeline(t, 0.5, 12)
	louder := train(t, "--config", config)
	if slices.Equal(losses(t, plain), losses(t, louder)) {
		t.Error("four times the amplitude gives the same losses")
	}

	t.Run("probability 0 changes nothing", func(t *testing.T) {
		dir := train(t, "--augment", "gain") // 0 is the default, which the plugin fills in itself
		if !slices.Equal(losses(t, dir), losses(t, plain)) {
			t.Errorf("losses differ")
		}
		want, got := checkpoints(t, plain), checkpoints(t, dir)
		for path, sum := range want {
			// state.json names the stages of the run, and MANIFEST has its sum.
			if name := filepath.Base(path); name != "state.json" && name != "MANIFEST" && got[path] != sum {
				t.Errorf("%s differs", path)
			}
		}
		if calls, restarts := served(t, dir); calls < 16 || restarts != 0 {
			t.Errorf("%d calls in 16 steps, %d restarts", calls, restarts)
		}
	})

	t.Run("two and four processes give the same bits", func(t *testing.T) {
		for _, workers := range []string{"2", "4"} {
			sameRun(t, workers, louder, train(t, "--config", config, "--plugin-workers", "python-gain="+workers))
		}
	})

	t.Run("kill -9 in mid-run changes nothing", func(t *testing.T) {
		killed := 0 // while few batches are ready: the run needs the next process
		kill := writer(func(p []byte) {
			if killed == 0 && bytes.Contains(p, []byte("step  8/16  loss")) {
				for _, pid := range pythonProcesses(t) {
					if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
						t.Error(err)
					}
					killed++
				}
			}
		})
		dir, err := trainPico(t, console.Console{Out: kill},
			append(slices.Clone(flags), "--config", config, "--log-every", "1", "--buffer-size", "2")...)
		if err != nil {
			t.Fatal(err)
		}
		if killed != 1 {
			t.Fatalf("%d processes were found and killed", killed)
		}
		if _, restarts := served(t, dir); restarts != 1 {
			t.Errorf("%d restarts", restarts)
		}
		sameRun(t, "plugin killed", louder, dir)
		if left := children(t); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
	})
}

// TestPythonError: an exception is an error with its line and the clips of the batch, and the stack is in the log, or
// beside the error where there is no run yet. A mistake of the user has the plugin's own hint.
func TestPythonError(t *testing.T) {
	const line, fix = `row["waveform"] *= self.factor`, "fix the plugin: "
	for _, tt := range []struct {
		name, from, to string
		exit           int
		want, hint     string
	}{
		{"an exception", line, "raise ValueError('too loud')", 4,
			`stage gain failed: ValueError: too loud \(plugin\.py:17\); clips [A-Z]/\d+, `, fix},
		{
			"an exit", line, "import sys; sys.exit(3)", 4,
			`stage gain failed: SystemExit: 3 \(plugin\.py:17\); clips [A-Z]/\d+, `, fix,
		},
		{
			"in a library", line, "import json; json.loads('no JSON')", 4,
			`stage gain failed: JSONDecodeError: .* \(plugin\.py:17\); clips [A-Z]/\d+, `, fix,
		},
		{
			"a user's mistake", line, "from xtts_plugin import UserError; raise UserError('too loud', 'lower db')", 4,
			`stage gain failed: too loud$`, "plugin python-gain: lower db",
		},
		{
			"in configure", `/ 20)`, `/ 0)`, 2,
			`^plugin python-gain: Configure: instance "gain": ZeroDivisionError: .* \(plugin\.py:10\)\n`, fix,
		},
		{
			"a user's mistake in configure", "class Gain(Stage):",
			"from xtts_plugin import UserError\nclass Gain(Stage):\n    def __init__(self): " +
				"raise UserError('db is odd', 'take an even one')", 2,
			`^plugin python-gain: Configure: instance "gain": db is odd$`, "plugin python-gain: take an even one",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := pythonPlugins(t)
			editFile(t, filepath.Join(folder, "gain", "plugin.py"), tt.from, tt.to)
			dir, err := trainPico(t, console.Console{}, "--plugins", folder, "--config", gainPipeline(t, 1, 12))
			if exit.Code(err) != tt.exit || !regexp.MustCompile(tt.want).MatchString(err.Error()) ||
				!strings.HasPrefix(exit.Hint(err), tt.hint) {
				t.Errorf("exit status %d: %v, hint %q", exit.Code(err), err, exit.Hint(err))
			}
			if tt.hint != fix {
				return
			}
			log := []byte(err.Error())
			if tt.exit == 4 {
				if log, err = os.ReadFile(filepath.Join(dir, "log.jsonl")); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Contains(log, []byte(", in process")) && !bytes.Contains(log, []byte(", in configure")) {
				t.Errorf("no stack:\n%s", log)
			}
		})
	}
}

// pythonProcesses are the children that run the plugin.
func pythonProcesses(t *testing.T) []int {
	t.Helper()
	var pids []int
	for _, pid := range children(t) {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(command, []byte("plugin.py")) {
			pids = append(pids, pid)
		}
	}
	return pids
}
