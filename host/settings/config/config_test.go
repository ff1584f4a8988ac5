package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// write makes a file in a folder of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

func parse(t *testing.T, environ []string, args ...string) *Set {
	t.Helper()
	s := New()
	if err := s.Parse(args, environ); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return s
}

var bundle = &manifest.Bundle{
	Optimizer: manifest.Optimizer{LR: 0.002, WeightDecay: 0.03, GradClip: 4},
	Schedule:  manifest.Schedule{Name: "cosine", WarmupSteps: 50},
}

// TestPrecedence gives the learning rate by every set of sources: the first of them, in this order, decides.
func TestPrecedence(t *testing.T) {
	run := t.TempDir()
	if err := os.WriteFile(filepath.Join(run, rundir.SettingsFile), []byte("lr: 0.4\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	file := write(t, "given.yaml", "lr: 0.3\n")
	sources := []struct {
		lr     float64
		origin string
	}{
		{0.1, "flag"}, {0.2, "environment"}, {0.3, file}, {0.4, filepath.Join(run, rundir.SettingsFile)}, {0.002,
			"bundle"},
		{0, "default"},
	}
	const last = 5 // the default is always there
	for set := range 1 << last {
		var args, environ []string
		given := func(i int) bool { return set&(1<<i) != 0 }
		if given(0) {
			args = append(args, "--lr", "0.1")
		}
		if given(1) {
			environ = append(environ, "XTTS_HOST_LR=0.2")
		}
		if given(2) {
			args = append(args, "--config", file)
		}
		if given(3) {
			args = append(args, "--resume", run)
		}
		s := parse(t, environ, args...)
		if given(4) {
			s.TakeBundle(bundle)
		}
		want := last
		for i := last - 1; i >= 0; i-- {
			if given(i) {
				want = i
			}
		}
		line := fmt.Sprintf("\nlr: %v  # %s\n", sources[want].lr, sources[want].origin)
		if s.LR != sources[want].lr || !strings.Contains(s.YAML(), line) {
			t.Errorf("sources %05b: learning rate %v, and no line%sin\n%s", set, s.LR, line, s.YAML())
		}
	}
}

func TestTakeBundle(t *testing.T) {
	s := parse(t, nil, "--weight-decay", "0", "--schedule", "constant")
	s.TakeBundle(bundle)
	if s.LR != 0.002 || s.WarmupSteps != 50 || s.GradClip != 4 {
		t.Errorf("not the bundle's: %+v", s.Config)
	}
	if s.WeightDecay != 0 || s.Schedule != "constant" {
		t.Errorf("the bundle replaces what was given: weight decay %v, schedule %s", s.WeightDecay, s.Schedule)
	}
}

func TestEnvironment(t *testing.T) {
	s := parse(t, []string{"XTTS_HOST_BATCH_SIZE=4", "XTTS_HOST_AUGMENT=a,b", "XTTS_HOST_SEED=", "BATCH_SIZE=9", "=x"},
		"--augment", "c")
	if s.BatchSize != 4 || s.Seed != 1 || !reflect.DeepEqual(s.Augment, []string{"c"}) {
		t.Errorf("batch size %d, seed %d, augment %v", s.BatchSize, s.Seed, s.Augment)
	}
	s = parse(t, []string{"XTTS_HOST_CONFIG=" + write(t, "c.json", `{"batch_size": 5}`)})
	if s.BatchSize != 5 {
		t.Errorf("the file that the environment names was not read: batch size %d", s.BatchSize)
	}
}

// TestOneRun checks that the folders of a run go with the source that names them first.
func TestOneRun(t *testing.T) {
	file := write(t, "c.yaml", "run_dir: of-the-file\ninit: weights\n")
	makeFolders(t, filepath.Join("x", rundir.Checkpoints))
	for _, tt := range []struct {
		name                 string
		environ, args        []string
		runDir, resume, init string
	}{
		{"file", nil, []string{"--config", file}, "of-the-file", "", "weights"},
		{"flag goes before the file", nil, []string{"--config", file, "--run-dir", "x"}, "x", "", "weights"},
		{"resume excludes the file's", nil, []string{"--config", file, "--resume", "x"}, "", "x", ""},
		{"resume excludes the environment's", []string{"XTTS_HOST_RUN_DIR=y"}, []string{"--resume", "x"}, "", "x", ""},
		{
			"a new run excludes the environment's", []string{"XTTS_HOST_RESUME=y"}, []string{"--run-dir", "x"}, "x", "",
			"",
		},
	} {
		s := parse(t, tt.environ, tt.args...)
		if s.RunDir != tt.runDir || s.Resume != tt.resume || s.Init != tt.init {
			t.Errorf("%s: run-dir %q, resume %q, init %q", tt.name, s.RunDir, s.Resume, s.Init)
		}
	}
}

// TestFreezeOrTrainOnly checks that one of the two undoes what a source after it says of the other.
func TestFreezeOrTrainOnly(t *testing.T) {
	file := write(t, "c.yaml", "freeze: [decoder.*]\n")
	if c := parse(t, nil, "--config", file).Config; !reflect.DeepEqual(c.Freeze, []string{"decoder.*"}) ||
		len(c.TrainOnly) > 0 {
		t.Errorf("read as %q, %q", c.Freeze, c.TrainOnly)
	}
	if c := parse(
		t, nil, "--config", file, "--train-only", "a,b",
	).Config; len(c.Freeze) > 0 || !reflect.DeepEqual(c.TrainOnly, []string{"a", "b"}) {
		t.Errorf("with --train-only: %q, %q", c.Freeze, c.TrainOnly)
	}
	c := parse(t, []string{"XTTS_HOST_FREEZE=x.*,y"}, "--config", file).Config
	if !reflect.DeepEqual(c.Freeze, []string{"x.*", "y"}) {
		t.Errorf("from the environment: %q", c.Freeze)
	}
}

// TestDeviceCPU checks that --device cpu overrides what a later source says about GPUs, and not what an earlier one
// says.
func TestDeviceCPU(t *testing.T) {
	file := write(t, "c.yaml",
		"data_gpu: 0\nmodel_gpu: GPU-1e3\nenable_memory_isolation: true\nmodel_gpu_memory: auto\n")
	if c := parse(t, nil, "--config", file).Config; c.DataGPU != "0" || c.ModelGPU != "GPU-1e3" || !c.MemoryIsolation ||
		c.ModelGPUMemory != 0 || c.DataGPUMemory != 8<<30 {
		t.Errorf("read as %+v", c)
	}
	c := parse(t, nil, "--config", file, "--device", "cpu").Config
	if !reflect.DeepEqual(c, func() Config { w := New().Config; w.Device = "cpu"; return w }()) {
		t.Errorf("with --device cpu: %+v", c)
	}
	file = write(t, "d.yaml", "device: cpu\ndata_gpu: 0\n")
	want := file + ": device: cpu cannot be combined with " + file + ": data_gpu: 0"
	if err := New().Parse([]string{"--config", file}, nil); err == nil || err.Error() != want {
		t.Errorf("in one file: %v", err)
	}
}

func TestRefused(t *testing.T) {
	makeFolders(t, filepath.Join("a", rundir.Checkpoints))
	for _, tt := range []struct {
		args    string
		environ string
		want    string
	}{
		{"--nope", "", "unknown flag: --nope"},
		{"run", "", `unexpected argument "run"`},
		{"--batch-size", "", "flag needs an argument: --batch-size"},
		{"--batch-size x", "", "--batch-size x: not a whole number"},
		{"--batch-size 1.5", "", "--batch-size 1.5: not a whole number"},
		{"--batch-size 99999999999999999999", "", "--batch-size 99999999999999999999: out of range"},
		{"--batch-size 0", "", "--batch-size 0: the smallest value is 1"},
		{"--batch-size 2000000", "", "--batch-size 2000000: the largest value is 1048576"},
		{"--epochs 0", "", "--epochs 0 has no end: give --max-steps as well"},
		{"--epochs=-1", "", "--epochs -1: the smallest value is 0"},
		{"--num-workers=-1", "", "--num-workers -1: the smallest value is 0"},
		{"--max-quarantine=-2", "", "--max-quarantine -2: the smallest value is -1"},
		{"--lr x", "", "--lr x: not a number"},
		{"--lr 1,5", "", "--lr 1,5: not a number"},
		{"--lr nan", "", "--lr NaN: not a number"},
		{"--grad-clip inf", "", "--grad-clip +Inf: the largest value is 1e+30"},
		{"--model-start-delay 1e9", "", "--model-start-delay 1e+09: the largest value is 86400"},
		{"--enable-static-shapes=perhaps", "", "--enable-static-shapes perhaps: neither true nor false"},
		{"--slots 9", "", "--slots 9: must be 2 to 8, or auto"},
		{"--train-data=", "", "--train-data is empty"},
		{"--resume=", "", "--resume is empty"},
		{"--slots 1", "", "--slots 1: must be 2 to 8, or auto"},
		{
			"--ring-memory lots", "",
			"--ring-memory lots: not an amount of memory: use a number of MB, or a unit as in 1GiB",
		},
		{"--plugin-workers features", "", `--plugin-workers features: "features" is not ID=N with N from 1 to 1024`},
		{"--schedule step", "", "--schedule step: must be constant, cosine, linear, exponential or plateau"},
		{"--device tpu", "", "--device tpu: must be auto, cpu or cuda"},
		{"--device cpu --data-gpu 0", "", "--device cpu cannot be combined with --data-gpu 0"},
		{
			"--device cpu --enable-memory-isolation", "",
			"--device cpu cannot be combined with --enable-memory-isolation true",
		},
		{
			"--model-gpu-memory auto", "XTTS_HOST_DEVICE=cpu",
			"XTTS_HOST_DEVICE=cpu cannot be combined with --model-gpu-memory auto",
		},
		{
			"--data-gpu-memory much", "",
			"--data-gpu-memory much: not an amount of memory: use a number of MB, or a unit as in 1GiB, or auto",
		},
		{
			"--verify-plugins --feature-cache x", "",
			"--verify-plugins true cannot be combined with --feature-cache x, which keeps calls from the plugins",
		},
		{
			"--adaptive", "XTTS_HOST_VERIFY_PLUGINS=true", "--adaptive true cannot be combined with " +
				"XTTS_HOST_VERIFY_PLUGINS=true, which lets only one process work at a time",
		},
		{
			"--feature-cache-size 0", "",
			"--feature-cache-size 0: not an amount of memory: use a number of MB, or a unit as in 1GiB",
		},
		{
			"--freeze a,b.* --train-only c", "",
			"--freeze a,b.* cannot be combined with --train-only c, which freezes everything that it does not name",
		},
		{
			"--resume a --run-dir b", "",
			"--resume a continues the run in that folder, so it cannot be combined with --run-dir b",
		},
		{
			"--resume-or-start a --run-dir b", "",
			"--resume-or-start a names the folder of the run, so it cannot be combined with --resume or --run-dir",
		},
		{
			"--resume-or-start a --resume b", "",
			"--resume-or-start a names the folder of the run, so it cannot be combined with --resume or --run-dir",
		},
		{"--resume a --init b", "", "--resume a has its own weights, so it cannot be combined with --init b"},
		{"", "XTTS_HOST_BATCH_SIZE=x", "XTTS_HOST_BATCH_SIZE=x: not a whole number"},
		{"", "XTTS_HOST_BATCH_SIZE=0", "XTTS_HOST_BATCH_SIZE=0: the smallest value is 1"},
		{"", "XTTS_HOST_SLOTS=9", "XTTS_HOST_SLOTS=9: must be 2 to 8, or auto"},
	} {
		err := New().Parse(strings.Fields(tt.args), []string{tt.environ})
		if err == nil {
			t.Errorf("%s %s: accepted", tt.args, tt.environ)
		} else if err.Error() != tt.want {
			t.Errorf("%s %s:\ngot  %v\nwant %s", tt.args, tt.environ, err, tt.want)
		}
	}
}

// TestSuggestions: what is mistyped gets the hint that names the right one, whatever says it.
func TestSuggestions(t *testing.T) {
	for _, tt := range []struct {
		args, environ, file string
		err, hint           string
	}{
		{"--train-dta x", "", "", "unknown flag: --train-dta", "did you mean --train-data?"},
		{"--batch_size=4", "", "", "unknown flag: --batch_size", "did you mean --batch-size?"},
		{"-batch-size 4", "", "", "unknown shorthand flag: 'b' in -batch-size", "did you mean --batch-size?"},
		{"--frobnicate", "", "", "unknown flag: --frobnicate", ""},
		{
			"--schedule cosin", "", "", "--schedule cosin: must be constant, cosine, linear, exponential or plateau",
			"did you mean cosine?",
		},
		{"--device gpu", "", "", "--device gpu: must be auto, cpu or cuda", "did you mean cuda?"},
		{"--device GPU", "", "", "--device GPU: must be auto, cpu or cuda", "did you mean cuda?"},
		{"--device cud", "", "", "--device cud: must be auto, cpu or cuda", "did you mean cuda?"},
		{"--device quantum", "", "", "--device quantum: must be auto, cpu or cuda", ""},
		{"--precision fp32", "", "", "--precision fp32: must be auto, f32, tf32 or bf16", "did you mean f32?"},
		{"--fuse false", "", "", "--fuse false: must be auto, on or off", "did you mean off?"},
		{"--lr 1,5", "", "", "--lr 1,5: not a number", "write 1.5"},
		{"--max-steps 10k", "", "", "--max-steps 10k: not a whole number", "write 10000"},
		{"--max-steps 1e3", "", "", "--max-steps 1e3: not a whole number", "write 1000"},
		{"--max-steps 20,000", "", "", "--max-steps 20,000: not a whole number", "write 20000"},
		{"--batch-size 1,5", "", "", "--batch-size 1,5: not a whole number", ""},
		{"--batch-size 10.000", "", "", "--batch-size 10.000: not a whole number", ""},
		{"--batch-size 8.5", "", "", "--batch-size 8.5: not a whole number", ""},
		{"--batch-size 8kk", "", "", "--batch-size 8kk: not a whole number", ""},
		{"--val-share 5%", "", "", "--val-share 5%: not a number", "write 0.05"},
		{"--val-share 2,5%", "", "", "--val-share 2,5%: not a number", "write 0.025"},
		{"--val-share 60%", "", "", "--val-share 60%: not a number", "it is a share, from 0 to 0.5: 5 % are 0.05"},
		{
			"--val-share 20", "", "", "--val-share 20: the largest value is 0.5",
			"for 20 % write 0.2; for 20 clips write 20 divided by the number of clips",
		},
		{
			"--val-share 1", "", "", "--val-share 1: the largest value is 0.5",
			"it is a share, from 0 to 0.5: 5 % are 0.05",
		},
		{
			"--val-share 500", "", "", "--val-share 500: the largest value is 0.5",
			"for 500 clips write 500 divided by the number of clips",
		},
		{"--ema 99.9", "", "", "--ema 99.9: the largest value is 1", "for 99.9 % write 0.999"},
		{"--lr 5%", "", "", "--lr 5%: not a number", ""},
		{"", "XTTS_HOST_VAL_SHARE=5%", "", "XTTS_HOST_VAL_SHARE=5%: not a number", "write 0.05"},
		{"--disk-wait 1m30s", "", "", "--disk-wait 1m30s: not a number", "it takes seconds: write 90"},
		{"--checkpoint-minutes 2h", "", "", "--checkpoint-minutes 2h: not a number", "it takes minutes: write 120"},
		{"--lr nan", "", "", "--lr NaN: not a number", ""},
		{
			"", "XTTS_HOST_BATCHSIZE=4", "", "unknown environment variable XTTS_HOST_BATCHSIZE",
			"did you mean XTTS_HOST_BATCH_SIZE?",
		},
		{
			"", "XTTS_HOST_SCHEDULE=constnt", "",
			"XTTS_HOST_SCHEDULE=constnt: must be constant, cosine, linear, exponential or plateau",
			"did you mean constant?",
		},
		{
			"", "XTTS_HOST_FROBNICATE=4", "", "unknown environment variable XTTS_HOST_FROBNICATE",
			"the variable of a setting is XTTS_HOST_ and its flag in capitals",
		},
		{
			"", "XTTS_HOST_LEARNING_RATE=4", "", "unknown environment variable XTTS_HOST_LEARNING_RATE",
			"did you mean XTTS_HOST_LR?",
		},
		{
			"", "", "per_device_train_batch_size: 4", `FILE: unknown key "per_device_train_batch_size"`,
			"did you mean batch_size?",
		},
		{"", "", "use_fp16: true", `FILE: unknown key "use_fp16"`, halfPrecision},
		{"", "", "batch-size: 4", `FILE: unknown key "batch-size"`, "did you mean batch_size?"},
		{"", "", "train_dta: x", `FILE: unknown key "train_dta"`, "did you mean train_data?"},
		{"", "", "pipline: []", `FILE: unknown key "pipline"`, "did you mean pipeline?"},
		{
			"", "", "schedule: cosin",
			"FILE: schedule: cosin: must be constant, cosine, linear, exponential or plateau", "did you mean cosine?",
		},
	} {
		args, path := strings.Fields(tt.args), ""
		if tt.file != "" {
			path = write(t, "c.yaml", tt.file)
			args = append(args, "--config", path)
		}
		err := New().Parse(args, []string{tt.environ})
		if err == nil {
			t.Errorf("%+v: accepted", tt)
		} else if got := strings.ReplaceAll(err.Error(), path, "FILE"); path != "" && got != tt.err ||
			path == "" && err.Error() != tt.err || hint.Of(err) != tt.hint {
			t.Errorf("%s %s %s:\ngot  %v (%s)\nwant %s (%s)", tt.args, tt.environ, tt.file, err, hint.Of(err), tt.err,
				tt.hint)
		}
	}
}

// TestNotSettings: variables that tests and Kubernetes make are nothing that a person has mistyped.
func TestNotSettings(t *testing.T) {
	parse(t, []string{
		"XTTS_PLUGIN_TEST_FAKE_CARDS=1", "XTTS_HOST_PORT_80_TCP_ADDR=10.0.0.1", "XTTS_HOST_SERVICE_HOST=10.0.0.1",
		"XTTS_HOST_SERVICE_PORT_HTTP=80", "XTTS_HOST_FROBNICATE=",
	})
}

// TestCopy: a copy has the same values and origins, and what is changed in one is not changed in the other.
func TestCopy(t *testing.T) {
	s := parse(t, []string{"XTTS_HOST_SEED=5"}, "--augment", "a,b", "--plugin-workers", "x=2,y=3", "--lr", "1e-4",
		"--slots", "auto")
	c := s.Copy()
	if !reflect.DeepEqual(s.Config, c.Config) || s.YAML() != c.YAML() {
		t.Errorf("copied\n%s\nwant\n%s", c.YAML(), s.YAML())
	}
	was := s.YAML()
	c.BatchSize = 3
	c.TakeBundle(&manifest.Bundle{Optimizer: manifest.Optimizer{WeightDecay: 7}})
	if c.LR != 1e-4 || c.WeightDecay != 7 || !strings.Contains(c.YAML(), "batch_size: 3") {
		t.Errorf("the copy takes\n%s", c.YAML())
	}
	if s.YAML() != was {
		t.Errorf("a change of the copy gives the original\n%s", s.YAML())
	}
}

// TestYAMLWithChanges: a setting that was changed has its new value, and says why.
func TestYAMLWithChanges(t *testing.T) {
	text := parse(t, nil, "--buffer-size", "50").YAML(Change{Name: "buffer-size", Value: "9", Origin: "lowered"})
	if !strings.Contains(text, "buffer_size: 9  # lowered\n") {
		t.Error(text)
	}
}

func TestParseHelp(t *testing.T) {
	if err := New().Parse([]string{"--help"}, nil); !errors.Is(err, pflag.ErrHelp) {
		t.Errorf("error %v", err)
	}
}

// TestBounds checks that no bound or choice is of a flag that is gone, and that every default is within its own.
func TestBounds(t *testing.T) {
	s := New()
	for name := range bounds {
		if f := s.flags.Lookup(name); f == nil {
			t.Errorf("bound of an unknown flag %s", name)
		}
	}
	for name := range words {
		if s.flags.Lookup(name) == nil {
			t.Errorf("choices of an unknown flag %s", name)
		}
	}
	s.flags.VisitAll(func(f *pflag.Flag) {
		if err := checkValue(f); err != nil {
			t.Errorf("the default of --%s: %v", f.Name, err)
		}
		switch _, bounded := bounds[f.Name]; f.Value.Type() {
		case "int", "int64", "float64":
			if !bounded && f.Name != "seed" {
				t.Errorf("--%s has no bounds", f.Name)
			}
		}
	})
}
