package validate

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/command/doctor"
	"github.com/xtts-host/xtts-host/host/command/probe"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// wrong is a value of a flag that no run can use, or none on a machine without a GPU, with what is said about it. FILE
// is a file of one byte, NONE a path where nothing is.
type wrong struct{ value, with, says string }

// The command line is refused before a check begins: only the values of these flags are wrong in themselves.
var refusedAtOnce = map[string]wrong{
	"resume-or-start": {"FILE", "", "--resume-or-start FILE: open FILE: not a directory"},
	"resume":          {"NONE", "", "--resume NONE: there is no such folder"},
	"allow":           {"lr", "", "--allow lr: only a run that is resumed"},
	"config":          {"NONE", "", "config file: open NONE: no such file"},
	"print-config":    {"x", "", "neither true nor false"},

	"normalize": {"NONE", "", `there is no rule "NONE"`},

	"epochs": {"-1", "", "the smallest value is 0"}, "max-steps": {"-1", "", "the smallest value is 0"},
	"batch-size": {"0", "", "the smallest value is 1"}, "accumulate": {"0", "", "the smallest value is 1"},
	"seed": {"x", "", "not a whole number"}, "enable-static-shapes": {"x", "", "neither true nor false"},

	"warmup-steps": {"-1", "", "the smallest value is 0"},
	"lr-decay":     {"2", "", "the largest value is 1"}, "plateau-factor": {"2", "", "the largest value is 1"},
	"plateau-patience": {"0", "", "the smallest value is 1"}, "weight-decay": {"-1", "", "the smallest value is 0"},
	"grad-clip": {"-1", "", "the smallest value is 0"}, "ema": {"2", "", "the largest value is 1"},
	"max-skipped": {"0", "", "the smallest value is 1"},

	"val-share": {"0.6", "", "the largest value is 0.5"}, "eval-every": {"-1", "", "the smallest value is 0"},
	"early-stop-delta":   {"-1", "", "the smallest value is 0"},
	"checkpoint-every":   {"-1", "", "the smallest value is 0"},
	"checkpoint-minutes": {"-1", "", "the smallest value is 0"}, "disk-wait": {"-1", "", "the smallest value is 0"},
	"rank-timeout": {"1", "", "the smallest value is 2"},
	"keep-last":    {"-1", "", "the smallest value is 0"}, "log-every": {"-1", "", "the smallest value is 0"},
	"keep-media": {"-1", "", "the smallest value is 0"}, "tensorboard": {"x", "", "neither true nor false"},
	"trace-nan": {"x", "", "neither true nor false"},

	"num-workers": {"-1", "", "the smallest value is 0"}, "plugin-timeout": {"-1", "", "the smallest value is 0"},
	"plugin-start-timeout": {"-1", "", "the smallest value is 0"},
	"plugin-memory":        {"x", "", "not an amount of memory"}, "buffer-size": {"0", "", "the smallest value is 1"},
	"on-range":           {"x", "", "must be quarantine, stop or warn"},
	"feature-cache-size": {"x", "", "not an amount of memory"}, "verify-plugins": {"x", "", "neither true nor false"},
	"sandbox": {"yes", "", "must be auto, on or off"},
	"debug":   {"x", "", "neither true nor false"}, "adaptive": {"x", "", "neither true nor false"},
	"slots": {"1", "", "must be 2 to 8, or auto"}, "model-start-delay": {"-1", "", "the smallest value is 0"},
	"max-quarantine": {"-2", "", "the smallest value is -1"},

	"cuda-graphs": {"maybe", "", "must be auto, on or off"}, "fuse": {"maybe", "", "must be auto, on or off"},
	"attention": {"f32", "", "must be auto or bf16"}, "deterministic": {"x", "", "neither true nor false"},
	"rank-sums": {"before", "", "must be auto, beside or after"},
	"threads":   {"-1", "", "the smallest value is 0"}, "data-gpu-memory": {"x", "", "not an amount of memory"},
	"model-gpu-memory": {"0", "", "not an amount of memory"}, "memory-baseline": {"-1", "", "not an amount of memory"},
	"trace-steps": {"0", "", "the smallest value is 1"},
}

// Doctor and validate find the fault by what a run does with the value.
var refusedByCheck = map[string]wrong{
	"plugins":    {"NONE", "", "--plugins NONE: NONE: no such file"},
	"graph":      {"NONE", "", "bundle: open NONE: no such file"},
	"train-data": {"NONE", "", "data set NONE: there is no such folder or file"},
	"val-data": {
		"FILE", "", "--val-data: data set FILE: a file that is neither .csv, .tsv, .txt, .list, .jsonl nor .json",
	},
	"list-layout":     {"nope", "", `--list-layout nope: there is no layout "nope"`},
	"val-list-layout": {"nope", "", "--val-list-layout nope: --val-data names no list"},
	"run-dir":         {"FILE/run", "", "--run-dir FILE/run: FILE is a file, not a folder"},
	"init":            {"FILE", "", "--init FILE: FILE: not a valid safetensors file"},
	"augment":         {"foo", "", `--augment foo: no plugin has a stage "foo"`},
	"freeze":          {"decodr", "", "--freeze decodr: no parameter has such a name"},
	"lr-factor":       {"decodr=2", "", "--lr-factor decodr=2: no parameter has such a name"},
	"train-only":      {"decodr", "", "--train-only decodr: no parameter has such a name"},

	"weight-decay-of": {"*.bias", "", "--weight-decay-of *.bias: not PATTERN=NUMBER"},

	"buckets":    {"50s", "", "--buckets 50s: "},
	"schedule":   {"plateau", "", "the schedule plateau lowers the learning rate by the validation loss"},
	"lr":         {"0", "", "--lr 0: a model learns with a rate above 0 only"},
	"min-lr":     {"5", "", "--min-lr 5 is above the learning rate"},
	"early-stop": {"3", "", "--early-stop 3 watches the validation loss"},

	"samples":      {"FILE", "", "--samples FILE: the bundle"},
	"recognizer":   {"transcribe", "", "--recognizer: the command has no {wav}"},
	"best-by":      {"mel", "", "--best-by mel compares evaluations"},
	"spoken-clips": {"3", "", "--spoken-clips 3: the bundle"},
	"probe":        {"gradient/decodr", "--val-share 0.5", "--probe gradient/decodr: no tensor has such a name"},

	"plugin-data":       {"nope=/", "", "--plugin-data nope: no stage of the pipeline has such a data folder"},
	"plugin-workers":    {"nope=2", "", "--plugin-workers nope: no plugin of that name"},
	"ring-memory":       {"1KB", "", "--ring-memory 1KB holds no slot"},
	"device":            {"cuda", "", "--device cuda: no GPU found"},
	"precision":         {"bf16", "", "--precision bf16 needs a GPU"},
	"require-checksums": {"true", "", "plugin.sum"},

	"plugins-lock":       {"NONE", "", "--plugins-lock: open NONE: no such file"},
	"require-signatures": {"true", "", "plugin features is not signed"},

	"ort-lib":   {"FILE", "", "FILE: file too short"},
	"cache-dir": {"FILE", "--graph builtin:myxtts-nano", "cache folder FILE: "},

	"data-gpu":                {"0", "", "--data-gpu 0: --model-gpu is missing"},
	"model-gpu":               {"7", "--data-gpu cpu", "--model-gpu 7: no GPU 7"},
	"enable-memory-isolation": {"true", "", "--enable-memory-isolation: no GPU found"},

	"feature-cache": {"FILE", "", "--feature-cache FILE: FILE is a file, not a folder"},

	"metrics":   {"localhost", "", "--metrics localhost: not an address to listen on"},
	"dashboard": {"8080", "", "--dashboard 8080: not an address to listen on"},
	"debug-dir": {"FILE", "", "--debug-dir FILE: FILE is a file, not a folder"},
	"trace":     {"NONE/trace.json", "", "--trace NONE/trace.json: stat NONE: no such file"},
}

// lookedAt stands for the processes that look at a machine without a GPU.
const lookedAt = `case $1 in
gpus) echo '{"value": {"driver": {"absent": "no driver"}}}';;
onnxruntime) [ -z "$2" ] && echo '{"value": {"Path": "libonnxruntime.so", "Version": "1.29.0"}}' || echo "{\"error\": \"$2: file too short\", \"hint\": \"fetch it\"}";;
*) echo '{"value": [{}, {}, {}, {}, {}, {}, {}]}';;
esac`

// TestEveryFlag: a wrong value of each flag of training is refused by doctor and by validate, with the value, the
// reason and a hint. A new flag needs a line above.
func TestEveryFlag(t *testing.T) {
	at := newPlaces(t)
	var names []string
	for _, g := range config.New().Groups() {
		g.Flags.VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	}
	if n := len(refusedAtOnce) + len(refusedByCheck); n != len(names) {
		t.Errorf("%d wrong values of %d flags", n, len(names))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			w, atOnce := refusedAtOnce[name]
			if !atOnce {
				var ok bool
				if w, ok = refusedByCheck[name]; !ok {
					t.Fatal("no wrong value of this flag: does doctor follow it?")
				}
			}
			args := append(at.good(w.with, name), "--"+name+"="+at.path(w.value))
			set := config.New()
			if err := set.Parse(args, nil); err != nil || atOnce {
				if err == nil || !atOnce || !strings.Contains(err.Error(), at.path(w.says)) ||
					!strings.Contains(err.Error(), at.path(w.value)) {
					t.Errorf("%q: %v", args, err)
				}
				return
			}
			command := probe.Command{"/bin/sh", "-c", lookedAt, "probe"}
			said := map[string]bool{} // by command: what is wanted
			for _, s := range doctor.Check(t.Context(), command, set, "v1").Sections {
				for _, f := range s.Findings {
					said["doctor"] = said["doctor"] ||
						f.State == doctor.Bad && f.Hint != "" && strings.Contains(f.Text, at.path(w.says))
				}
			}
			v := newValidation(set, command, console.Console{Out: io.Discard, Err: io.Discard})
			defer v.close()
			r, err := Try(t.Context(), v.beforeModel(t.Context(), "v1"), io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range r.Sections {
				for _, o := range s.Checks {
					said["validate"] = said["validate"] ||
						o.Fault != nil && o.Hint != "" && strings.Contains(o.Detail, at.path(w.says))
				}
			}
			if !said["doctor"] || !said["validate"] || exit.Code(r.Err()) != 2 {
				t.Errorf("%q: %v, validate: %v, hint %q, exit status %d", args, said, r.Err(), exit.Hint(r.Err()),
					exit.Code(r.Err()))
			}
		})
	}
}

// TestGoodFlags: without a wrong value nothing is refused, so each refusal above is about its flag.
func TestGoodFlags(t *testing.T) {
	at := newPlaces(t)
	set := config.New()
	if err := set.Parse(at.good("", ""), nil); err != nil {
		t.Fatal(err)
	}
	r := doctor.Check(t.Context(), probe.Command{"/bin/sh", "-c", lookedAt, "probe"}, set, "v1")
	if !r.Works {
		t.Errorf("%+v", r.Sections)
	}
}

// places are files and folders that the flags of a test name.
type places struct{ dir string }

func newPlaces(t *testing.T) *places {
	t.Helper()
	p := &places{t.TempDir()}
	in := func(name string) string { return filepath.Join(p.dir, name) }
	sample, err := dataset.Sample(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(sample, "metadata_train.csv"))
	if err != nil {
		t.Fatal(err)
	}
	few := bytes.Join(bytes.SplitAfter(list, []byte("\n"))[:5], nil) // and none for validation
	// stands for the plugin's program, which nothing starts
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(shell)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile("../../../plugins/features/plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(
		os.CopyFS(in("data"), os.DirFS(sample)),
		os.Remove(in("data/metadata_eval.csv")),
		os.WriteFile(in("data/metadata_train.csv"), few, 0o666),
		os.MkdirAll(in("plugins/features"), 0o777),
		os.WriteFile(in("plugins/features/features_"+runtime.GOOS+"_"+runtime.GOARCH), program, 0o777),
		os.WriteFile(in("plugins/features/plugin.json"), manifest, 0o666),
		os.WriteFile(in("file"), []byte("x"), 0o666),
	)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// path replaces the words of a wrong value.
func (p *places) path(text string) string {
	return strings.NewReplacer("FILE", filepath.Join(p.dir, "file"), "NONE", filepath.Join(p.dir, "none")).Replace(text)
}

// good returns flags that doctor accepts, with more of them, and without the flag of that name.
func (p *places) good(more, but string) []string {
	var args []string
	for name, value := range map[string]string{
		"plugins": filepath.Join(p.dir, "plugins"), "graph": "../../../ortgraphs/testdata/pico", "batch-size": "4",
		"cache-dir": filepath.Join(p.dir, "cache"), "train-data": filepath.Join(p.dir, "data"),
	} {
		if name != but {
			args = append(args, "--"+name, value)
		}
	}
	return append(args, strings.Fields(p.path(more))...)
}
