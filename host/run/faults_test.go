package run

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/stages/catalog/catalogtest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// faulty is the plugin that injects the fault a test selects. It is built once, by the first test that needs it.
const faulty = "../../plugins/testdata/faulty"

var buildFaulty = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(plugins), "faulty")
	return dir, catalogtest.Build(filepath.Join(dir, faultyProgram), faulty)
})

var faultyProgram = catalogtest.Program("faulty")

// faultyPlugins returns a folder with the features plugin and the faulty one. change may alter the copy of the latter.
func faultyPlugins(t *testing.T, change func(dir string)) string {
	t.Helper()
	built, err := buildFaulty()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(filepath.Join(plugins, "features"), filepath.Join(folder, "features")); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(folder, "faulty")
	if change == nil {
		err = os.Symlink(built, dir)
	} else {
		err = os.CopyFS(dir, os.DirFS(built))
	}
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(dir)
	}
	return folder
}

// faultRun is the outcome of a run with the faulty plugin.
type faultRun struct {
	dir, warnings string
	restarts      map[string]int // by plugin
	err           error
}

// trainFaulty runs pico with the stage mix before the features. Each of the faults occurs once and leaves its mark in
// the folder marks; without marks the first fault occurs in every process.
func trainFaulty(t *testing.T, faults, marks string, flags ...string) faultRun {
	t.Helper()
	t.Setenv("XTTS_PLUGIN_FAULT", faults)
	t.Setenv("XTTS_PLUGIN_FAULT_MARKS", marks)
	var warnings bytes.Buffer
	dir, err := trainPico(t, console.Console{Err: &warnings}, flags...)
	if left := children(t); len(left) > 0 {
		t.Errorf("processes left: %v", left)
	}
	r := faultRun{dir: dir, warnings: warnings.String(), restarts: map[string]int{}, err: err}
	if data, err := os.ReadFile(filepath.Join(dir, rundir.ReportFile)); err == nil {
		var report struct {
			Plugins []struct {
				ID       string
				Restarts int
			}
		}
		if err := json.Unmarshal(data, &report); err != nil {
			t.Fatal(err)
		}
		for _, p := range report.Plugins {
			r.restarts[p.ID] = p.Restarts
		}
	}
	return r
}

var faultFlags = []string{"--augment", "mix", "--max-steps", "10", "--checkpoint-every", "4", "--eval-every", "5"}

// undisturbed is the folder of a run with these flags in which no fault occurs.
func undisturbed(t *testing.T) string {
	t.Helper()
	return shared(t, "undisturbed", func() string {
		run := trainFaulty(t, "", "", append(slices.Clone(faultFlags), "--plugins", faultyPlugins(t, nil))...)
		if run.err != nil {
			t.Fatal(run.err)
		}
		return run.dir
	})
}

const (
	again = "warning: plugin faulty is restarted: "
	// How many slots are damaged, and whether another process can have done it, depends on timing. The tests of guards
	// cover each case.
	damaged = "byte N after the end of tensor \"" // which one is found first depends on what else is being decoded
)

// oneFault is a fault that occurs once.
type oneFault struct {
	name     string
	restarts bool
	warning  string // with N for numbers and clips, which differ between runs
}

// survived are groups of faults, one run each. The run continues after them.
var survived = map[string]struct {
	faults []oneFault // at most four restarts: more are a crash loop
	flags  []string
}{
	"crashes": {faults: []oneFault{
		{"crashes", true, again + "it ended: exit status 3, while it worked on stage mix (step N"},
		{"floods its stderr", false, ""},
		{"overwrites the whole ring", true, damaged},
		{"overwrites other slots", true, damaged},
	}},
	"returns wrong results": {faults: []oneFault{
		{"gives a length beyond the tensor", true, again +
			"stage mix: row N has length N in waveform_lengths, outside N to N"},
		{"gives a negative length", true, again + "stage mix: row N has length -N in waveform_lengths, outside N to N"},
		{"answers twice", true, again + "it sent a result for call N, which is not in flight"},
		{"reports draws unasked", true, again + "stage mix: it reports draws of row N, which the host did not ask for"},
	}},
	"misses deadlines": {faults: []oneFault{
		{"hangs", true, again + "stage mix: no result within 1s"},
		{"answers for an unknown call", true, again +
			"it sent a result for call N, which is not in flight, while it worked on stage mix (step N"},
		{"hangs when asked to drain", false, "warning: plugin faulty: process lost: Drain: no answer within 1s\n"},
	}, flags: []string{"--plugin-timeout", "1"}},
	"works alone": {faults: []oneFault{
		{"fails", false, "warning: plugin faulty: stage mix failed: panic: index out of range [7] with length 7 " +
			"(mix.go:N); rebuilding the batch\n"},
		{"gives NaN", false, "warning: plugin faulty: stage mix: waveform of clip N is not finite; rebuilding the " +
			"batch\n"},
		{"rejects a row that is not there", true, again + "stage mix: it rejects row N of a batch of N"},
		{"writes beyond its tensor", true, again +
			"stage mix: byte N after the end of tensor \"waveform\" was overwritten"},
	}, flags: []string{"--buffer-size", "1"}}, // so no other process can have done it
}

// TestRunSurvivesFault: each fault occurs once, some of them in one run, with batches in flight. The run warns of it,
// and has the same bits as an undisturbed run.
func TestRunSurvivesFault(t *testing.T) {
	folder := faultyPlugins(t, nil)
	flags := append(slices.Clone(faultFlags), "--plugins", folder)
	want := undisturbed(t)
	for name, tt := range survived {
		t.Run(name, func(t *testing.T) {
			marks, restarts := t.TempDir(), 0
			var names []string
			for _, f := range tt.faults {
				names = append(names, f.name)
			}
			got := trainFaulty(t, strings.Join(names, ","), marks, append(slices.Clone(flags), tt.flags...)...)
			if got.err != nil {
				t.Fatal(got.err)
			}
			numbers := regexp.MustCompile(`\b([A-Z]/)?\d+\b`)
			text := numbers.ReplaceAllString(got.warnings, "N")
			for _, f := range tt.faults {
				if _, err := os.Stat(filepath.Join(marks, f.name)); err != nil {
					t.Errorf("the fault did not occur: %v", err)
				}
				if want := numbers.ReplaceAllString(f.warning, "N"); !strings.Contains(text, want) {
					t.Errorf("%s: warnings:\n%s\nwant:\n%s", f.name, text, want)
				}
				if f.restarts {
					restarts++
				}
			}
			// the run may end while the last is being replaced
			if n := got.restarts["faulty"]; n != restarts && n != restarts-1 {
				t.Errorf("%d restarts, want %d:\n%s", n, restarts, got.warnings)
			}
			sameRun(t, name, want, got.dir)
			if info, err := os.Stat(filepath.Join(got.dir, "log.jsonl")); err != nil || info.Size() > 1<<20 {
				t.Errorf("log of %d bytes, %v", info.Size(), err)
			}
		})
	}
}

// TestRunOfOldPlugin: a plugin that has only protocol 1 has the same run, with neither sources nor reports.
func TestRunOfOldPlugin(t *testing.T) {
	got := trainFaulty(t, "has protocol 1 only", "", append(slices.Clone(faultFlags), "--plugins",
		faultyPlugins(t, nil))...)
	if got.err != nil || got.restarts["faulty"] > 0 {
		t.Fatal(got.err, got.warnings)
	}
	sameRun(t, "protocol 1", undisturbed(t), got.dir)
}

// TestSources: stages of the target and of the reference get the part of a clip that each row is, also for a reference
// that is replaced, and in evaluations.
func TestSources(t *testing.T) {
	got := trainFaulty(t, "knows its sources", "", append(slices.Clone(faultFlags), "--augment", "", "--config",
		sourcesPipeline(t), "--plugins", faultyPlugins(t, nil))...)
	if got.err != nil {
		t.Fatal(got.err)
	}
}

const lastWords = "\nits last lines on stderr:\n  faulty: segmentation fault in libmixer.so"

// TestFaultEndsRun: after a fault that a restart cannot fix the run ends with the reason and a hint.
func TestFaultEndsRun(t *testing.T) {
	edit := func(from, to string) func(string) {
		return func(dir string) { editFile(t, filepath.Join(dir, "plugin.json"), from, to) }
	}
	for _, tt := range []struct {
		fault  string
		change func(dir string) // of the plugin's folder
		flags  []string
		exit   int
		err    string // DIR is the plugin's folder, RUN the run's
		hint   string
	}{
		{"crash at start", nil, nil, 2,
			"plugin faulty: start: it ended before the handshake was done: exit status 3" + lastWords,
			"fix the plugin or install it again, or leave its stages out of the pipeline"},
		{"hang at start", nil, []string{"--plugin-start-timeout", "3"}, 2,
			"plugin faulty: start: no handshake within 3s",
			"if it needs that long, allow more with --plugin-start-timeout SECONDS"},
		{"writes to stdout", nil, nil, 2,
			`plugin faulty: start: it wrote "libmixer 2.1 (c) 2019" to its standard output instead of the handshake`,
			"write nothing to the standard output before the handshake: docs/plugin-protocol.md, Process"},
		{"reports another version", nil, nil, 2,
			"plugin faulty: Info: another program: it reports faulty 0.9.0, but plugin.json has faulty 1.0.0",
			"build the program and its plugin.json from the same source"},
		{"speaks another protocol", nil, nil, 2,
			"plugin faulty: start: the program uses protocol 3, but this host has 1 and 2",
			"install a build of the plugin for this host's protocol (docs/plugin-protocol.md)"},
		{"declares another protocol", edit(`"protocol": 1`, `"protocol": 3`), nil, 2,
			`--augment mix: stage "mix": plugin DIR is broken: it needs protocol 3, but this host has 1 and 2`,
			"install a build of the plugin for this host's protocol (docs/plugin-protocol.md)"},
		{"has protocol 1 only", edit(`"protocol": 1`, `"protocol": 2`), nil, 2,
			"plugin faulty: start: the program uses protocol 1, but plugin.json says that it needs 2",
			`build the program with an SDK of that protocol, or lower "protocol" in plugin.json`},
		{"declares another dtype", edit(`"waveform", "dtype": "f32"`, `"waveform", "dtype": "f64"`), nil, 2,
			`pipeline: instance "mix": input port "waveform" of stage mix needs f64[B,T_wav], but tensor "waveform" is f32[B,T_wav]; tensors that fit: nothing`,
			"bind another tensor in the pipeline, or correct the ports in DIR/plugin.json"},
		{"is modified", modify(t), nil, 2,
			`--augment mix: stage "mix": plugin DIR is modified: PROGRAM has sha256 SUM, but plugin.sum has SUM`,
			"install the plugin again; if the change is yours, write its plugin.sum again with sha256sum"},
		{"refuses its configuration", nil, []string{"--config", mixPipeline(t, 5)}, 2,
			`plugin faulty: Configure: instance "mix": amount is 5`,
			"plugin faulty: take an amount from 0 to 1"},
		{"takes another dtype", nil, nil, 4,
			"stage mix: 3 times in a row (step 6, batch 6 of epoch 1, clips B/0002, B/0005, B/0008, B/0011): " +
				`plugin faulty: stage mix failed: panic: port "waveform" is f32, not i32 (mix.go:LINE)`,
			"fix the plugin: docs/plugins.md, Test, shows how to run a stage by itself; then continue with --resume " +
				"RUN (step N is saved)"},
	} {
		t.Run(tt.fault, func(t *testing.T) {
			folder := faultyPlugins(t, tt.change)
			flags := append(append(slices.Clone(faultFlags), "--plugins", folder), tt.flags...)
			if slices.Contains(tt.flags, "--config") {
				flags = append(flags, "--augment", "") // the pipeline has it
			}
			got := trainFaulty(t, tt.fault, "", flags...)
			if exit.Code(got.err) != tt.exit || got.err == nil {
				t.Fatalf("exit status %d, want %d: %v", exit.Code(got.err), tt.exit, got.err)
			}
			names := strings.NewReplacer(filepath.Join(folder, "faulty"), "DIR", got.dir, "RUN", faultyProgram,
				"PROGRAM")
			text := sums.ReplaceAllString(names.Replace(got.err.Error()), "SUM")
			if text = lines.ReplaceAllString(text, "mix.go:LINE"); text != tt.err {
				t.Errorf("error:\n%s\nwant:\n%s", text, tt.err)
			}
			if text := names.Replace(anyStep(got.err)); text != tt.hint {
				t.Errorf("hint:\n%s\nwant:\n%s", text, tt.hint)
			}
			if _, err := os.Stat(got.dir); (err == nil) != (tt.exit != 2) {
				t.Errorf("run folder: %v", err)
			}
		})
	}
}

var savedStep = regexp.MustCompile(`\(step [0-9]+ is saved\)`)

// anyStep returns the hint of an error with N for the step that is saved: batches are prepared for later steps than the
// run has come to.
func anyStep(err error) string {
	return savedStep.ReplaceAllString(exit.Hint(err), "(step N is saved)")
}

// TestCrashLoopLeavesCheckpoint: a batch that crashes every process ends the run. With a fixed plugin the run resumes.
func TestCrashLoopLeavesCheckpoint(t *testing.T) {
	flags := append(slices.Clone(faultFlags), "--plugins", faultyPlugins(t, nil))
	want := undisturbed(t)
	got := trainFaulty(t, "crashes at one batch", "", flags...)
	if exit.Code(got.err) != 4 {
		t.Fatalf("exit status %d: %v", exit.Code(got.err), got.err)
	}
	const text = "stage mix: plugin faulty: it keeps crashing: 5 processes in a row failed on the same batch " +
		"(step 6, batch 6 of epoch 1, clips B/0002, B/0005, B/0008, B/0011); " +
		"the last time: it ended: exit status 3, while it worked on stage mix (step 6)" + lastWords
	if got.err.Error() != text {
		t.Errorf("error:\n%v\nwant:\n%s", got.err, text)
	}
	if hint := "fix the plugin: docs/plugins.md, Test, shows how to run a stage by itself; then continue with " +
		"--resume " +
		got.dir + " (step N is saved)"; anyStep(got.err) != hint {
		t.Errorf("hint:\n%s\nwant:\n%s", anyStep(got.err), hint)
	}
	// The run ends while the fifth process is, or is not yet, being replaced.
	n := strings.Count(got.warnings, "warning: plugin faulty is restarted: it ended: exit status 3")
	if n < 4 || n > 5 || got.restarts["features"] > 0 {
		t.Errorf("%d restarts reported, restarts %v:\n%s", n, got.restarts, got.warnings)
	}
	done := len(losses(t, got.dir))
	if done == 0 || done >= len(losses(t, want)) {
		t.Fatalf("the run ended after step %d", done)
	}
	t.Setenv("XTTS_PLUGIN_FAULT", "")
	if err := runFlags(t, console.Console{}, "--resume", got.dir); err != nil {
		t.Fatal(err)
	}
	if done%4 != 0 && done%5 != 0 { // the other run has no checkpoint of the step at which this one ended
		if err := os.RemoveAll(filepath.Join(got.dir, "checkpoints", fmt.Sprintf("step-%06d", done))); err != nil {
			t.Fatal(err)
		}
	}
	sameRun(t, fmt.Sprintf("resumed after step %d", done), want, got.dir)
}

// TestRowThatIsNeverFinite: after the second attempt the row is left out and reported by name.
func TestRowThatIsNeverFinite(t *testing.T) {
	got := trainFaulty(t, "gives NaN for one row", "",
		append(slices.Clone(faultFlags), "--plugins", faultyPlugins(t, nil))...)
	if got.err != nil {
		t.Fatal(got.err)
	}
	data, err := os.ReadFile(filepath.Join(got.dir, "quarantine.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var row struct{ ID, Reason, Stage string }
	if err := json.Unmarshal(data, &row); err != nil { // one line
		t.Fatalf("%s: %v", data, err)
	}
	if row.ID == "" || row.Stage != "mix" || row.Reason != "plugin faulty: stage mix: waveform is not finite, twice" {
		t.Errorf("%+v", row)
	}
	want := "stage mix: waveform of clip " + row.ID + " is not finite; rebuilding the batch\n"
	if strings.Count(got.warnings, want) != 1 {
		t.Errorf("warnings:\n%s\nwant once:\n%s", got.warnings, want)
	}
	if n := len(losses(t, got.dir)); n != 10 || got.restarts["faulty"] != 0 {
		t.Errorf("%d steps, restarts %v", n, got.restarts)
	}
}

// mixPipeline writes a config file with the pipeline of pico after mix with that amount.
func mixPipeline(t *testing.T, amount float64) string {
	ports := map[string]string{"waveform": "waveform", "waveform_lengths": "waveform_lengths"}
	mix := manifest.StageInstance{
		Name: "mix", Stage: "mix", Config: map[string]any{"amount": amount}, Inputs: ports, Outputs: ports,
	}
	return picoPipeline(t, func(p []manifest.StageInstance) []manifest.StageInstance {
		return append([]manifest.StageInstance{mix}, p...)
	})
}

// sourcesPipeline writes one with keyed before the other stages, for the target and for the reference.
func sourcesPipeline(t *testing.T) string {
	return picoPipeline(t, func(p []manifest.StageInstance) []manifest.StageInstance {
		for name, ports := range map[string]map[string]string{
			"of-target":    {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
			"of-reference": {"waveform": "reference_waveform", "waveform_lengths": "reference_lengths"},
		} {
			keyed := manifest.StageInstance{Name: name, Stage: "keyed", Inputs: ports, Outputs: ports}
			p = append([]manifest.StageInstance{keyed}, p...)
		}
		return p
	})
}

// idlePipeline writes one with idle in the place of the first stage.
func idlePipeline(t *testing.T) string {
	return picoPipeline(t, func(p []manifest.StageInstance) []manifest.StageInstance { p[0].Stage = "idle"; return p })
}

func picoPipeline(t *testing.T, change func([]manifest.StageInstance) []manifest.StageInstance) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(pico, "bundle.json"))
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := manifest.ParseBundle("bundle.json", data)
	if err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(map[string]any{"pipeline": change(bundle.Pipeline)}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	sums  = regexp.MustCompile(`\b[0-9a-f]{64}\b`)
	lines = regexp.MustCompile(`mix\.go:\d+`)
)

func editFile(t testing.TB, path, from, to string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(data, []byte(from)) {
		t.Fatalf("%s: no %s", path, from)
	}
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(from), []byte(to)), 0o666); err != nil {
		t.Fatal(err)
	}
}

// modify changes the program without its checksums.
func modify(t *testing.T) func(dir string) {
	return func(dir string) {
		var sums strings.Builder
		for _, name := range []string{faultyProgram, "plugin.json"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
		}
		if err := os.WriteFile(filepath.Join(dir, "plugin.sum"), []byte(sums.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, faultyProgram), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString("\n"); err != nil {
			t.Fatal(err)
		}
	}
}
