package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

var update = flag.Bool("update", false, "regenerate docs/config.schema.json")

const pipelineYAML = `
pipeline:
  - name: target
    stage: features/logmel
    config: {db: -3}
    inputs: {waveform: waveform}
    outputs:
      mel_spectrograms: mel
`

func TestFile(t *testing.T) {
	for _, tt := range []struct{ name, text string }{
		{"YAML", "# a comment\nbatch_size: 4\nlr: 1e-3\naugment: [a, b/c]\nplugin_workers: {features: 2}\n" +
			"ring_memory: 512\nslots: auto\nenable_static_shapes: true" +
			pipelineYAML},
		{"words for maps", "batch_size: 4\nlr: 0.001\naugment:\n- a\n- b/c\nplugin_workers: features=2\n" +
			"ring_memory: 512MiB\nslots: auto\nenable_static_shapes: true" +
			pipelineYAML},
		{
			"JSON",
			`{"batch_size": 4, "lr": 0.001, "augment": ["a", "b/c"], "plugin_workers": {"features": 2}, "ring_memory": "0.5GiB", "slots": "auto",
			"enable_static_shapes": true, "pipeline": [{"name": "target", "stage": "features/logmel", "config": {"db": -3},
			"inputs": {"waveform": "waveform"}, "outputs": {"mel_spectrograms": "mel"}}]}`,
		},
	} {
		c := parse(t, nil, "--config", write(t, "c", tt.text)).Config
		want := New().Config
		want.BatchSize, want.LR, want.Augment, want.PluginWorkers = 4, 0.001, []string{"a", "b/c"},
			map[string]int{"features": 2}
		want.RingMemory, want.Slots, want.StaticShapes = 512<<20, 0, true
		want.Pipeline = []manifest.StageInstance{{
			Name: "target", Stage: "features/logmel", Config: map[string]any{"db": -3.0},
			Inputs: map[string]string{"waveform": "waveform"}, Outputs: map[string]string{"mel_spectrograms": "mel"},
		}}
		if c.PipelineFile == "" {
			t.Errorf("%s: no file of the pipeline", tt.name)
		}
		if c.PipelineFile = ""; !reflect.DeepEqual(c, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.name, c, want)
		}
	}
	for _, text := range []string{"", "\n", "# nothing\n", "null", "{}"} {
		if c := parse(t, nil, "--config", write(t, "c", text)).Config; !reflect.DeepEqual(c, New().Config) {
			t.Errorf("%q changes the defaults: %+v", text, c)
		}
	}
	if s := parse(t, nil, "--config", write(t, "c", "pipeline: []")); s.Pipeline == nil {
		t.Error("an empty pipeline is taken for none")
	}
}

func TestFileRefused(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"batch_sizes: 4", `FILE: unknown key "batch_sizes"`},
		{"config: other.yaml", `FILE: unknown key "config"`},
		{"batch_size: many", "FILE: batch_size: got string, want integer"},
		{"batch_size: 1.5", "FILE: batch_size: got number, want integer"},
		{"batch_size: 0", "FILE: batch_size: 0: the smallest value is 1"},
		{"batch_size: 4000000", "FILE: batch_size: 4000000: the largest value is 1048576"},
		{"batch_size:", "FILE: batch_size: got null, want integer"},
		{"seed: 99999999999999999999", "FILE: seed: got string, want integer"},
		{"lr: fast", "FILE: lr: got string, want number"},
		{"lr: .inf", "FILE: json: unsupported value: +Inf"},
		{"require_checksums: 1", "FILE: require_checksums: got number, want boolean"},
		{"schedule: step", "FILE: schedule: step: must be constant, cosine, linear, exponential or plateau"},
		{"slots: 9", "FILE: slots: must be 2 to 8, or auto"},
		{"ring_memory: lots", "FILE: ring_memory: not an amount of memory: use a number of MB, or a unit as in 1GiB"},
		{"plugin_workers: {features: 0}", "FILE: plugin_workers.features: minimum: got 0, want 1"},
		{"augment: noise", "FILE: augment: got string, want array"},
		{"pipeline: [{name: a, stage: b, input: {}}]", `FILE: pipeline[0] (a): unknown key "input"`},
		{"pipeline: [{name: a, stage: b, inputs: {}, outputs: {}, kind: x}]", `FILE: pipeline[0] (a): unknown key "kind"`},
		{choosing("p: 30"), "FILE: pipeline[0] (g): p is 30, but a probability is 0 to 1"},
		{choosing("p: 30%"), "FILE: pipeline[0] (g): p: got string, want number or array"},
		{choosing("p: [[0]]"), "FILE: pipeline[0] (g): p.0: minItems: got 1, want 2"},
		{choosing("p: [[-5, 0], [1, 1]]"), "FILE: pipeline[0] (g): step -5 of p is negative"},
		{choosing("odds: 1"), `FILE: pipeline[0] (g): unknown key "odds"`},
		{choosing("count: 1"), "FILE: pipeline[0] (g): count is not for one_of"},
		{choosing("weight: 1"), "FILE: pipeline[0] (g): weight is not for a group"},
		{"pipeline: [{name: g, one_of: []}]", "FILE: pipeline[0] (g): one_of is empty"},
		{
			"pipeline: [{name: g, one_of: [{name: a, stage: s, inputs: {}, outputs: {}, wieght: 1}]}]",
			`FILE: pipeline[0] (g): one_of[0] (a): unknown key "wieght"`,
		},
		{
			"pipeline: [{name: g, one_of: [{name: a, one_of: [{name: b}]}]}]",
			"FILE: pipeline[0] (g): one_of[0] (a): a group in a group is not supported",
		},
		{"- batch_size", "FILE: there is no setting in it"},
		{"batch_size: 4\nbatch_size: 5", `FILE:2:1: mapping key "batch_size" already defined at [1:1]`},
		{"batch_size: [", "FILE:1:13: sequence end token ']' not found"},
		{"batch_size 4", "FILE: there is no setting in it"},
		{"seed: &s 3\nepochs: *s", "FILE:1: anchors and aliases (&) are not supported"},
		{"seed: 1\nepochs: *s", "FILE:2: anchors and aliases (*) are not supported"},
		{
			strings.Repeat("#", maxFile+1),
			"config file: read FILE: too large: 65537 bytes, more than the limit of 65536",
		},
	} {
		path := write(t, "c.yaml", tt.text)
		err := New().Parse([]string{"--config", path}, nil)
		if err == nil {
			t.Errorf("%s: accepted", tt.text)
			continue
		}
		got, _, _ := strings.Cut(strings.ReplaceAll(err.Error(), path, "FILE"), "\n")
		if got != tt.want {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.text, got, tt.want)
		}
	}
	for text, want := range map[string]string{
		choosing("p: 30%"): "for 30 percent, write 0.3", choosing("prob: 1"): "did you mean p?",
		"batch_size: many": "docs/config.schema.json has every key and its type",
	} {
		if err := New().Parse([]string{"--config", write(t, "c.yaml", text)}, nil); hint.Of(err) != want {
			t.Errorf("%s: %v (%s)", text, err, hint.Of(err))
		}
	}
	if err := New().Parse([]string{"--config", t.TempDir()}, nil); !errors.Is(err, files.ErrNotRegular) {
		t.Errorf("a folder: %v", err)
	}
	err := New().Parse([]string{"--config", "missing.yaml"}, nil)
	if err == nil || err.Error() != "config file: open missing.yaml: no such file or directory" {
		t.Errorf("missing file: %v", err)
	}
}

// TestYAMLReadsBack sets every flag to values drawn at random and reads the printed settings again.
func TestYAMLReadsBack(t *testing.T) {
	const rounds = 50
	r := rand.New(rand.NewPCG(1, 2))
	for round := range rounds {
		s := New()
		s.flags.VisitAll(func(f *pflag.Flag) {
			if isSetting(f) && !ofOneRun[f.Name] && r.IntN(4) > 0 {
				if err := f.Value.Set(draw(r, f)); err != nil {
					t.Fatal(err)
				}
				s.origins[f.Name] = "drawn"
			}
		})
		if len(s.Freeze) > 0 {
			s.TrainOnly = nil
		}
		if s.ValShare > 0 {
			s.ValData = ""
		}
		if s.VerifyPlugins {
			s.FeatureCache, s.Adaptive = "", false
		}
		if s.Attention == "bf16" {
			s.Precision, s.Fuse = "tf32", "auto"
		}
		if s.Device == "cpu" {
			for _, name := range gpuFlags {
				f := s.flags.Lookup(name)
				if err := f.Value.Set(f.DefValue); err != nil {
					t.Fatal(err)
				}
			}
		}
		if round%2 == 0 {
			s.Pipeline = []manifest.StageInstance{{
				Name: word(r), Stage: word(r), Config: map[string]any{word(r): r.Float64()},
				Inputs: map[string]string{word(r): word(r)}, Outputs: map[string]string{word(r): word(r)},
				Data: map[string]string{word(r): word(r)},
			}}
		}
		text := s.YAML()
		again := New()
		if err := again.Parse([]string{"--config", write(t, "c.yaml", text)}, nil); err != nil {
			t.Fatalf("round %d: %v\n%s", round, err, text)
		}
		if !equal(s.Config, again.Config) {
			t.Fatalf("round %d:\nprinted %+v\nread    %+v\n%s", round, s.Config, again.Config, text)
		}
	}
}

// equal takes empty and nil lists and maps for the same.
func equal(a, b Config) bool {
	for _, c := range []*Config{&a, &b} {
		c.PipelineFile = "" // where it is printed, not what
		if len(c.Freeze) == 0 {
			c.Freeze = nil
		}
		if len(c.Probe) == 0 {
			c.Probe = nil
		}
		if len(c.TrainOnly) == 0 {
			c.TrainOnly = nil
		}
		if len(c.Augment) == 0 {
			c.Augment = nil
		}
		if len(c.LRFactor) == 0 {
			c.LRFactor = nil
		}
		if len(c.WeightDecayOf) == 0 {
			c.WeightDecayOf = nil
		}
		if len(c.PluginWorkers) == 0 {
			c.PluginWorkers = nil
		}
		if len(c.PluginData) == 0 {
			c.PluginData = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

// draw returns a value that the flag accepts.
func draw(r *rand.Rand, f *pflag.Flag) string {
	if all, ok := words[f.Name]; ok {
		return all[r.IntN(len(all))]
	}
	b, bounded := bounds[f.Name]
	if !bounded {
		b = bound{math.MinInt32, math.MaxInt32}
	}
	switch f.Value.Type() {
	case "int", "int64":
		return strconv.FormatInt(int64(b.min)+r.Int64N(int64(b.max-b.min)+1), 10)
	case "float64":
		v := math.Pow(10, float64(r.IntN(13)-8)) // 1e-08 to 10000
		return strconv.FormatFloat(max(b.min, min(b.max, v)), 'g', -1, 64)
	case "rules":
		return []string{"none", "all", "all:fa", "digits,spaces", "letters:ar"}[r.IntN(5)]
	case "bool":
		return strconv.FormatBool(r.IntN(2) == 0)
	case "ID=N":
		return fmt.Sprintf("plugin-%d=%d,p=3", r.IntN(9), 1+r.IntN(maxWorkers))
	case "NAME=DIR":
		return fmt.Sprintf("noise-%d=a,b/%d,mix.rooms==,", r.IntN(9), r.IntN(9))
	case "memory":
		return fmt.Sprintf("%dKB", 1+r.Int64N(1<<32))
	case "limit":
		return []string{"auto", "8192", "16GiB"}[r.IntN(3)]
	case "gpu":
		return []string{"", "0", "1e3", "GPU-1e3", "auto", "cpu"}[r.IntN(6)]
	case "n":
		return []string{"auto", "2", "3", "8"}[r.IntN(4)]
	case "buckets":
		return []string{"auto", "8", "bundle", "2.5s,5s", "0.25"}[r.IntN(5)]
	case "stringSlice":
		return []string{"a", "true,2", "x/y,null", "1e3"}[r.IntN(4)]
	}
	return word(r)
}

// word returns a text that a careless writer of YAML would spoil.
func word(r *rand.Rand) string {
	return []string{
		"a", "1", "-", "null", "true", "~", "a: b", "a #b", `a"b\c`, "'", "ä ö", "a\nb", "\t", "{}", "[x]", "*a", "&a",
		"!x", "%x", "1e3", "0x10", "2026-01-02", "<&>",
	}[r.IntN(23)]
}

// FuzzFile reads any text. What is accepted is printed so that it reads back.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"batch_size: 4\n", "{}", "lr: 1e-4" + pipelineYAML, "augment: [a, b]\nslots: auto", "a: &x [*x]", "- 1",
		choosing("p: [[0, 0.5], [9, 1]]"),
		"ring_memory: 1GiB\nplugin_workers: {a: 1}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, again := New(), New()
		if err := s.Parse([]string{"--config", write(t, "c.yaml", text)}, nil); err != nil {
			return
		}
		printed := s.YAML()
		if err := again.Parse([]string{"--config", write(t, "c.yaml", printed)}, nil); err != nil {
			t.Fatalf("%v\n%s", err, printed)
		}
		s.RunDir, s.Resume, s.Init, s.Allow = "", "", "", nil // printed as comments
		if !equal(s.Config, again.Config) {
			t.Fatalf("printed %+v\nread    %+v\n%s", s.Config, again.Config, printed)
		}
	})
}

func TestFoldersOfARunAreComments(t *testing.T) {
	text := parse(t, nil, "--run-dir", "here", "--init", "weights").YAML()
	for _, want := range []string{
		"# run_dir: \"here\"  # flag\n", "# init: \"weights\"  # flag\n", "# resume: \"\"  # default\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no line %q in\n%s", want, text)
		}
	}
	if s := parse(t, nil, "--config", write(t, "c.yaml", text)); s.RunDir != "" || s.Init != "" {
		t.Errorf("another run takes over run-dir %q, init %q", s.RunDir, s.Init)
	}
}

// choosing is a file with a group that has another key.
func choosing(more string) string {
	return "pipeline: [{name: g, one_of: [{name: a, stage: s, inputs: {}, outputs: {}}], " + more + "}]"
}

// TestPageHasAPipeline: the entries of docs/bundle.md that choose rows are read as they are there.
func TestPageHasAPipeline(t *testing.T) {
	page, err := os.ReadFile("../../../docs/bundle.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "## Choices of augmentations")
	_, text, _ = strings.Cut(text, "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	s := parse(t, nil, "--config", write(t, "c.yaml", text))
	var got []string
	for _, i := range s.Pipeline {
		got = append(got, i.Summary())
	}
	if want := []string{
		"clip 30 %", "one of (telephone, hiss) 0 to 80 %",
	}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSchema(t *testing.T) {
	const golden = "../../../docs/config.schema.json"
	var got bytes.Buffer
	enc := json.NewEncoder(&got)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(New().Schema()); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("%s is not that of the flags: make generate writes it\n%s", golden, got.Bytes())
	}
}
