package plugintest

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort/orttest"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

const pico = "../../../ortgraphs/testdata/pico"

// TestMain makes the batches small: the race detector sees each of their bytes.
func TestMain(m *testing.M) {
	seconds = []float64{0.04, 0.08}
	growthCalls = 40
	m.Run()
}

// build builds the plugin of a source folder, and returns the folder with its program and plugin.json.
func build(t *testing.T, source, program string) string {
	t.Helper()
	dir := t.TempDir()
	if err := catalogtest.Build(filepath.Join(dir, catalogtest.Program(program)), source); err != nil {
		t.Fatal(err)
	}
	return dir
}

// test tests the plugin in a folder.
func test(t *testing.T, dir, stage string, patience, deadline time.Duration, values map[string]any) *Result {
	t.Helper()
	bundle, err := ortgraphs.Open(pico, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	entry, err := catalog.Open(dir)
	if err != nil || !entry.Startable() {
		t.Fatal(err, entry.State, entry.Reason)
	}
	r, err := Run(t.Context(), Config{
		Plugin: entry, Bundle: bundle, ORTLibrary: orttest.Library(), Stage: stage, Values: values,
		Log: slog.New(slog.DiscardHandler), Patience: patience, Deadline: deadline,
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// failed returns the failed checks of a stage with their reasons.
func failed(t *testing.T, r *Result, stage string) map[string]string {
	t.Helper()
	for _, s := range r.Stages {
		if s.Name != stage {
			continue
		}
		found := map[string]string{}
		for _, c := range s.Checks {
			if c.State == Failed {
				found[c.Name] = c.Why
				if c.Hint == "" {
					t.Errorf("%s has no hint", c.Name)
				}
			}
		}
		return found
	}
	t.Fatalf("no stage %s", stage)
	return nil
}

// first is the check that sends the first batches.
const first = "full, short and odd rows"

// faults are what a plugin may do wrong, each with the check that finds it and its reason.
var faults = []struct{ fault, stage, check, why string }{
	{"crash at start", "mix", checks[0].name, "start: it ended before the handshake was done: exit status 3"},
	{"hang at start", "mix", checks[0].name, "start: no handshake within 2s"},
	{"crashes", "mix", first, "it ended: exit status 3, while it worked on stage test"},
	{"hangs", "mix", first, "stage test: no result within 2s"},
	{"reports another version", "mix", checks[0].name, "it reports faulty 0.9.0, but plugin.json has faulty 1.0.0"},
	{"gives a negative length", "mix", first, "has length -1 in tensor_waveform_lengths"},
	{"scales as int16", "mix", first, "beyond its range of 8"},
	{"writes f64", "mix", first, "row 0 of tensor_waveform is not finite"},
	{"gives NaN", "mix", first, "not finite"},
	{"is far too loud", "mix", first, "has the value 1e+30 at element 0, beyond its range of 8"},
	{
		"gives zeros", "mix", first,
		"row 0 of tensor_waveform has the value 0 everywhere, but the recording is not silent",
	},
	{"writes beyond its tensor", "mix", first, "it wrote to the bytes after tensor_waveform in ring slot"},
	{"changes a tensor that is not its own", "mix", first, "it changed row 0 of bystander in ring slot"},
	{"shortens a row", "tint", first, "tensor_waveform_lengths is not an output of the stage"},
	{"writes to the padding", "mix", "padding after each row", "not the pad value -2.5"},
	{"writes after its answer", "mix", "no write after the answer", "it wrote to row 0 of bystander in ring slot"},
	{"answers twice", "mix", first, "it sent a result for call 2, which is not in flight"},
	{"answers an old call", "mix", first, "it sent a result for call 1, which is not in flight"},
	{"changes empty rows", "mix", "empty rows", "row 1 of port waveform has 0 valid elements, and element 0 is"},
	{"draws from the clock", "mix", "same batch, same bits", "differ"},
	{"depends on earlier calls", "mix", "same batch, same bits", "differ"},
	{"depends on the place", "mix", "any place in any batch", "differ"},
	{"draws otherwise when asked", "mix", "asked for its draws", "differ"},
	{"declares its draws cacheable", "keyed", "any epoch, if cacheable", "differ"},
	{"declares its source cacheable", "keyed", "any epoch, if cacheable", "differ"},
	{"depends on the process", "mix", "two processes", "differ"},
	{"keeps memory", "mix", "memory does not grow with the calls", "its memory grows by some "},
	{"depends on the restart", "mix", "killed in a call", "differ"},
	{"ignores its configuration", "mix", "its configuration has an effect", "other values of amount change nothing"},
	{"floods its stderr", "mix", "few lines on its standard error", " lines in "},
	{"leaves a child process", "mix", "ends when asked to", "child processes in other process groups"},
	{"ignores its lifeline", "mix", "ends with the host", "after the end of its lifeline"},
	{"hangs when asked to drain", "mix", "ends when asked to", "Drain: no answer"},
}

// TestFaults: each fault is found by the check that is for it.
func TestFaults(t *testing.T) {
	dir := build(t, "../../../plugins/testdata/faulty", "faulty")
	for _, c := range faults {
		t.Run(c.fault, func(t *testing.T) {
			t.Setenv("XTTS_PLUGIN_FAULT", c.fault)
			t.Setenv("XTTS_PLUGIN_FAULT_MARKS", "")
			t.Setenv("TMPDIR", t.TempDir())
			t.Setenv("XTTS_PLUGIN_FAULT_LIVES", t.TempDir()) // "depends on the restart" counts there
			// The usual limits, but for a plugin that will not answer.
			var patience, deadline time.Duration
			switch c.fault {
			case "hang at start", "hangs":
				deadline = 2 * time.Second
			case "hangs when asked to drain", "ignores its lifeline":
				patience = 500 * time.Millisecond
			}
			found := failed(t, test(t, dir, c.stage, patience, deadline, nil), c.stage)
			if why, ok := found[c.check]; !ok || !strings.Contains(why, c.why) {
				t.Errorf("%s: %q, want %q; failed: %v", c.check, why, c.why, found)
			}
			alone := []string{
				"draws from the clock", "changes empty rows", "ignores its configuration", "floods its stderr",
				"leaves a child process", "draws otherwise when asked", "keeps memory",
			}
			if slices.Contains(alone, c.fault) && len(found) != 1 {
				t.Errorf("one fault fails %d checks: %v", len(found), found)
			}
		})
	}
	t.Run("an idle stage", func(t *testing.T) {
		t.Setenv("XTTS_PLUGIN_FAULT", "")
		if found := failed(t, test(t, dir, "mix", 0, 0, nil), "mix"); len(found) > 0 {
			t.Errorf("of a sound stage failed: %v", found)
		}
		r := test(t, dir, "idle", 0, 0, nil)
		why := failed(t, r, "idle")["full, short and odd rows"]
		if !strings.Contains(why, "answered without writing row 0 of tensor_mel_spectrograms") {
			t.Errorf("idle: %q", why)
		}
		var text bytes.Buffer
		r.Print(&text)
		for _, want := range []string{
			"faulty 1.0.0: stage idle (preprocess)\n  ✓ starts",
			"  ✗ full, short and odd rows\n      it answered without", "      hint: write all outputs",
			" MiB of memory at most\n",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, &text)
			}
		}
	})
	t.Run("a refused configuration", func(t *testing.T) {
		found := failed(t, test(t, dir, "mix", 0, 0, map[string]any{"amount": 5}), "mix")
		if why := found["starts and accepts its configuration"]; !strings.Contains(why, "amount is 5") {
			t.Errorf("failed: %v", found)
		}
	})
}

// TestWhichFolder: the hint for a plugin that is not there names no folder that the user has not named.
func TestWhichFolder(t *testing.T) {
	dir := filepath.Dir(build(t, "../../../plugins/testdata/faulty", "faulty"))
	for _, c := range []struct{ name, plugins, hint string }{
		{dir, "plugins", dir + " is a folder of plugins: name one of them, as in "},
		{dir, t.TempDir(), dir + " is a folder of plugins: name one of them, as in "},
		{"nothing", t.TempDir(), whichFolder}, {"nothing", "no-such-folder", whichFolder},
		{"fautly", dir, "did you mean faulty?"},
	} {
		_, err := findPlugin(c.name, c.plugins)
		if err == nil || !strings.HasPrefix(hint.Of(err), c.hint) {
			t.Errorf("%s in %s: %v (%s), want %s", c.name, c.plugins, err, hint.Of(err), c.hint)
		}
	}
}

// TestRefused: a program that this machine cannot run, and one that is not what plugin.sum says, are not tested.
func TestRefused(t *testing.T) {
	dir := build(t, "../../../plugins/testdata/faulty", "faulty")
	file := filepath.Join(dir, catalogtest.Program("faulty"))
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	foreign := bytes.Clone(program)
	foreign[18] ^= 0xff // e_machine of the ELF header
	refused := func(content []byte, want string) {
		t.Helper()
		if err := os.WriteFile(file, content, 0o777); err != nil {
			t.Fatal(err)
		}
		if _, err := findPlugin(dir, ""); err == nil || !strings.Contains(err.Error(), want) || hint.Of(err) == "" {
			t.Errorf("%v (hint: %s), want %q", err, hint.Of(err), want)
		}
	}
	refused(foreign, "is for another machine")
	sums := ""
	for _, name := range []string{filepath.Base(file), manifest.PluginFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
	}
	if err := os.WriteFile(filepath.Join(dir, manifest.SumFile), []byte(sums), 0o666); err != nil {
		t.Fatal(err)
	}
	refused(program, "is modified: faulty_")
}

// TestSound: plugins that keep the rules pass, in Go and in Python.
func TestSound(t *testing.T) {
	venv, err := filepath.Abs("../../../.cache/venv-plugin/bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(venv), "ready")); err != nil {
		t.Fatalf("no Python with gRPC and numpy; this makes it: scripts/venv-plugin.sh (%v)", err)
	}
	t.Setenv("PATH", venv+string(os.PathListSeparator)+os.Getenv("PATH"))
	lowpass := build(t, "../../../plugins/testdata/lowpass", "lowpass")
	graph, err := os.ReadFile("../../../plugins/testdata/lowpass/lowpass.onnx")
	if err == nil {
		err = os.WriteFile(filepath.Join(lowpass, "lowpass.onnx"), graph, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		dir    string
		values map[string]any
	}{
		"features": {build(t, "../../../plugins/features", "features"), nil},
		"lowpass":  {lowpass, nil},
		"python":   {"../../../plugins/testdata/python/gain", map[string]any{"probability": 0.5}},
	} {
		t.Run(name, func(t *testing.T) {
			r := test(t, c.dir, "", 0, 0, c.values)
			if r.Failed() > 0 {
				var text bytes.Buffer
				r.Print(&text)
				t.Error(text.String())
			}
		})
	}
}
