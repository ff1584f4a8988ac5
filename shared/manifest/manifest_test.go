package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

const (
	pico     = "../../ortgraphs/testdata/pico/bundle.json"
	features = "../../plugins/features/plugin.json"
)

func read(t testing.TB, file string) []byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestParseBundle(t *testing.T) {
	b, err := ParseBundle("bundle.json", read(t, pico))
	if err != nil {
		t.Fatal(err)
	}
	if b.Name != "myxtts-pico" || len(b.Parameters) == 0 || len(b.Buckets) != 3 {
		t.Errorf("got %s with %d parameters and %d buckets", b.Name, len(b.Parameters), len(b.Buckets))
	}
	if g, ok := b.TrainingGraph("", F32); !ok || g.File != "training_model.onnx" {
		t.Errorf("training graph %+v, %v", g, ok)
	}
	if _, ok := b.TrainingGraph("", BF16); ok {
		t.Error("found a graph that does not exist")
	}
	if got := b.Metrics(); !reflect.DeepEqual(got, []string{"mel_loss", "stop_loss"}) {
		t.Errorf("metrics %v", got)
	}
	again, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseBundle("again", again)
	if err != nil || !reflect.DeepEqual(b, c) {
		t.Errorf("the bundle changed after writing and reading it: %v", err)
	}
}

// edit changes one place of a JSON document. A path step is a key or an index.
func edit(t *testing.T, data []byte, value any, path ...any) []byte {
	t.Helper()
	var doc any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	at := doc
	for _, step := range path[:len(path)-1] {
		if key, ok := step.(string); ok {
			at = at.(map[string]any)[key]
		} else {
			at = at.([]any)[step.(int)]
		}
	}
	last := path[len(path)-1]
	switch {
	case value == nil:
		delete(at.(map[string]any), last.(string))
	default:
		if key, ok := last.(string); ok {
			at.(map[string]any)[key] = value
		} else {
			at.([]any)[last.(int)] = value
		}
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestBundleRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		path  []any
		want  string
	}{
		{"version", 2, []any{"version"}, "bundle.json: version: "},
		{"unknown key", 1, []any{"colour"}, `bundle.json: top level: unknown key "colour"`},
		{"unknown key inside", 1, []any{"inputs", 0, "colour"}, `bundle.json: inputs.0: unknown key "colour"`},
		{"missing", nil, []any{"parameters"}, "bundle.json: top level: missing property 'parameters'"},
		{"dtype", "f31", []any{"inputs", 0, "dtype"}, "bundle.json: inputs.0.dtype: "},
		{"path in a file name", "../x.onnx", []any{"graphs", 0, "file"}, "bundle.json: graphs.0.file: "},
		{"nodes", map[string]any{"MatMul": 0}, []any{"graphs", 0, "nodes"}, "bundle.json: graphs.0.nodes.MatMul: "},
		{"hash", "abc", []any{"files", "training_model.onnx"}, "bundle.json: files.training_model.onnx: "},
		{"lengths", "mel_spectrograms", []any{"inputs", 2, "lengths"},
			`bundle.json: inputs: the lengths tensor "mel_spectrograms" of`},
		{"same names", "text_lengths", []any{"inputs", 0, "name"},
			`bundle.json: input "text_lengths" has the name of input`},
		{"seed", "seed", []any{"inputs", 0, "name"}, `bundle.json: input "seed" has the name of the seed`},
		{"symbol without value", nil, []any{"buckets", 1, "T_mel"},
			`bundle.json: buckets[1]: input "mel_spectrograms": dimension T_mel`},
		{"descending", 1, []any{"buckets", 2, "T_text"}, "bundle.json: buckets[2]: T_text = 1 is smaller"},
		{"dynamic, without clips", map[string]any{"T_text": 50}, []any{"dynamic"},
			"bundle.json: dynamic: missing property 'T_wav'"},
		{"dynamic, without texts", map[string]any{"T_wav": 90000}, []any{"dynamic"},
			"bundle.json: dynamic: T_text must be in both"},
		{"dynamic, too small", map[string]any{"T_text": 50, "T_wav": 22016}, []any{"dynamic"},
			"bundle.json: dynamic: T_wav = 22016 is smaller than in the last bucket (44032)"},
		{"bf16 vector", "bf16", []any{"parameters", 45, "compute"},
			`has compute bf16, but is not a matrix: its shape is [`},
		{"compute", "f16", []any{"parameters", 0, "compute"}, "bundle.json: parameters.0.compute: "},
		{"precision", "f16", []any{"graphs", 0, "precision"}, "bundle.json: graphs.0.precision: "},
		{"bf16 evaluation", "bf16", []any{"graphs", 1, "precision"}, "bundle.json: graphs.1.precision: "},
		{"output", "gradient", []any{"outputs", 2, "name"}, `bundle.json: outputs: "gradient" is neither`},
		{"loss", "metric.x", []any{"outputs", 0, "name"}, "bundle.json: outputs: loss and loss_weight are both needed"},
		{"two instances of one name", "target", []any{"pipeline", 1, "name"},
			`bundle.json: pipeline: two instances are named "target"`},
		{"reserved name", "train", []any{"pipeline", 1, "name"},
			`bundle.json: pipeline: "train" is the name of a phase of the host`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParseBundle("bundle.json", edit(t, read(t, pico), c.value, c.path...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
	_, err := ParseBundle("x/bundle.json", []byte("{"))
	if err == nil || !strings.HasPrefix(err.Error(), "x/bundle.json: not JSON: ") {
		t.Errorf("incomplete file: %v", err)
	}
}

// TestDynamic: every bucket up to the limits can be made, which needs buckets that differ in texts and clips only.
func TestDynamic(t *testing.T) {
	limits := map[string]any{"T_text": 100, "T_wav": 88064}
	data := edit(t, read(t, pico), limits, "dynamic")
	b, err := ParseBundle("bundle.json", data)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := b.Fit(Bucket{"T_wav": 2560, "T_text": 7}), (Bucket{
		"T_text": 7, "T_wav": 2560, "T_mel": 11, "T_ref": 8192, "T_ref_mel": 33,
	}); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, c := range []struct {
		symbol string
		want   string
	}{
		{"T_ref", "dynamic: buckets[2]: T_ref = 9000, expected 8192: only T_text and T_wav may differ"},
		{"T_mel", "dynamic: buckets[2]: T_mel = 9000, expected 173"},
	} {
		_, err := ParseBundle("bundle.json", edit(t, data, 9000, "buckets", 2, c.symbol))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.symbol, err, c.want)
		}
	}
}

// TestStrides: a symbol that follows from the samples of a row.
func TestStrides(t *testing.T) {
	data := edit(t, read(t, pico), map[string]any{"T_text": 100, "T_wav": 88064}, "dynamic")
	data = edit(t, data, map[string]any{"T_code": 1024}, "strides")
	var document Bundle
	if err := json.Unmarshal(data, &document); err != nil {
		t.Fatal(err)
	}
	for i, bucket := range document.Buckets {
		data = edit(t, data, (bucket["T_wav"]+1023)/1024, "buckets", i, "T_code")
	}
	b, err := ParseBundle("bundle.json", data)
	if err != nil {
		t.Fatal(err)
	}
	for samples, want := range map[int]int{1: 1, 1024: 1, 1025: 2, 88064: 86} {
		if got := b.Fit(Bucket{"T_wav": samples, "T_text": 7})["T_code"]; got != want {
			t.Errorf("%d samples: %d, want %d", samples, got, want)
		}
	}
	for _, c := range []struct {
		value any
		path  []any
		want  string
	}{
		{
			77, []any{"buckets", 2, "T_code"},
			"dynamic: buckets[2]: T_code = 77, expected 43: only T_text and T_wav may " +
				"differ between the buckets, and T_mel and T_code",
		},
		{map[string]any{"T_mel": 256}, []any{"strides"}, "dynamic: strides has T_mel: it is for symbols"},
		{map[string]any{"T_other": 256}, []any{"strides"}, "dynamic: strides has T_other"},
		{map[string]any{"T_code": 0}, []any{"strides"}, "strides.T_code: "},
	} {
		_, err := ParseBundle("bundle.json", edit(t, data, c.value, c.path...))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %s", c.path, err, c.want)
		}
	}
}

func TestParsePlugin(t *testing.T) {
	p, err := ParsePlugin("plugin.json", read(t, features))
	if err != nil {
		t.Fatal(err)
	}
	s, ok := p.Stage("logmel")
	if !ok || s.Kind != Preprocess || len(s.Inputs) != 2 || len(s.Outputs) != 2 {
		t.Errorf("stage %+v, %v", s, ok)
	}
	if command, err := p.Command(); err != nil || len(command) != 1 {
		t.Errorf("command %v, %v", command, err)
	}
	if _, ok := p.Stage("nothing"); ok {
		t.Error("found a stage that does not exist")
	}
}

func TestPluginRefusals(t *testing.T) {
	for _, c := range []struct {
		name  string
		value any
		path  []any
		want  string
	}{
		{"id", "Big Name", []any{"id"}, "plugin.json: id: "},
		{"path out of the folder", "../sh", []any{"executable", "linux_amd64"},
			"plugin.json: executable.linux_amd64: "},
		{"two commands", []string{"python3"}, []any{"argv"},
			"plugin.json: exactly one of executable and argv is needed"},
		{"no command", nil, []any{"executable"}, "plugin.json: exactly one of executable and argv is needed"},
		{"kind", "filter", []any{"stages", 0, "kind"}, "plugin.json: stages.0.kind: "},
		{"augment with a new output", "augment", []any{"stages", 0, "kind"},
			`plugin.json: stage "logmel": output "mel_spectrograms" is not an input`},
		{"port twice", "waveform", []any{"stages", 0, "inputs", 1, "name"},
			`plugin.json: stage "logmel": two inputs are named "waveform"`},
		{"growth", 0.5, []any{"stages", 0, "max_growth"}, "plugin.json: stages.0.max_growth: "},
		{"no memory", 0, []any{"gpu_memory_mb"}, "plugin.json: gpu_memory_mb: "},
		{"half a MB", 0.5, []any{"gpu_memory_mb"}, "plugin.json: gpu_memory_mb: "},
		{"memory as text", "1GB", []any{"gpu_memory_mb"}, "plugin.json: gpu_memory_mb: "},
		{"memory that overflows", 1 << 44, []any{"gpu_memory_mb"}, "plugin.json: gpu_memory_mb: "},
		{"memory of a stage", 800, []any{"stages", 0, "gpu_memory_mb"},
			`plugin.json: stages.0: unknown key "gpu_memory_mb"`},
		{"files that the configuration lacks", []string{"f_min", "graph"}, []any{"stages", 1, "files"},
			`plugin.json: stage "prosody": files has "graph", which is not a property of config`},
		{"a homepage that can be read on the way", "http://example.com", []any{"homepage"}, "plugin.json: homepage: "},
		{"a version of the host that is a tag", "v0.3.0", []any{"min_host"}, "plugin.json: min_host: "},
		{"network as text", "yes", []any{"network"}, "plugin.json: network: "},
		{"a folder that depends on where it runs", []string{"noise"}, []any{"folders"}, "plugin.json: folders.0: "},
		{"a folder with a line feed", []string{"/data\nnoise"}, []any{"folders"}, "plugin.json: folders.0: "},
		{"a folder by a longer path", []string{"/data/../etc"}, []any{"folders"},
			`plugin.json: folders: "/data/../etc" is not the shortest path of a folder below /`},
		{"every folder", []string{"//"}, []any{"folders"}, `plugin.json: folders: "//" is not the shortest path`},
		{"a folder twice", []string{"/a", "/a"}, []any{"folders"}, "plugin.json: folders: "},
		{"unknown key", 800, []any{"gpu_memory"}, `plugin.json: top level: unknown key "gpu_memory"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ParsePlugin("plugin.json", edit(t, read(t, features), c.value, c.path...))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// TestPluginAsks: what a process needs besides its own folder.
func TestPluginAsks(t *testing.T) {
	p, err := ParsePlugin("plugin.json", read(t, features))
	if err != nil || p.Network || p.Folders != nil {
		t.Errorf("a plugin that asks for nothing: network %v, folders %q, %v", p.Network, p.Folders, err)
	}
	folders := []string{"/data/noise", "/home/übung/rooms and halls"}
	p, err = ParsePlugin("plugin.json", edit(t, edit(t, read(t, features), folders, "folders"), true, "network"))
	if err != nil || !p.Network || !reflect.DeepEqual(p.Folders, folders) {
		t.Errorf("got %+v, %v", p, err)
	}
}

// TestPluginGPUMemory: only a plugin that can use a GPU may need memory of it.
func TestPluginGPUMemory(t *testing.T) {
	needs := edit(t, read(t, features), 800, "gpu_memory_mb")
	for _, c := range []struct {
		logmel, prosody string // gpu of the two stages
		want            string
	}{
		{"optional", "none", ""},
		{"none", "required", ""},
		{"none", "none", "plugin.json: gpu_memory_mb is given, but no stage has gpu optional or required"},
	} {
		data := edit(t, edit(t, needs, c.logmel, "stages", 0, "gpu"), c.prosody, "stages", 1, "gpu")
		p, err := ParsePlugin("plugin.json", data)
		if c.want == "" && (err != nil || p.GPUMemoryMB != 800) ||
			c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("gpu %s and %s: %v, want %q", c.logmel, c.prosody, err, c.want)
		}
	}
}

func TestValidateConfig(t *testing.T) {
	s := Stage{Name: "noise", Config: map[string]any{"type": "object", "additionalProperties": false,
		"properties": map[string]any{
			"snr_db": map[string]any{"type": "number", "minimum": 0, "default": 20.5},
			"colour": map[string]any{"enum": []any{"white", "pink"}},
			"gain":   map[string]any{"type": "number", "minimum": -6, "maximum": 6},
			"free":   map[string]any{},
		}}}
	const all = "stage noise takes colour (one of white, pink), free, gain (number, -6 to 6), snr_db (number, at " +
		"least 0, default 20.5)"
	for _, c := range []struct {
		config     map[string]any
		want, hint string
	}{
		{nil, "", ""},
		{map[string]any{"snr_db": 3}, "", ""},
		{map[string]any{"snr_db": -1}, `config of stage "noise": snr_db: `,
			"stage noise takes snr_db (number, at least 0, default 20.5)"},
		{map[string]any{"colour": "blue"}, `config of stage "noise": colour: `,
			"stage noise takes colour (one of white, pink)"},
		{map[string]any{"snr": 3}, `config of stage "noise": top level: unknown key "snr"`, all},
	} {
		err := ValidateConfig(s, c.config)
		if (err == nil) != (c.want == "") ||
			err != nil && (!strings.HasPrefix(err.Error(), c.want) || hint.Of(err) != c.hint) {
			t.Errorf("%v: %v, want %q\nhint %q\nwant %q", c.config, err, c.want, hint.Of(err), c.hint)
		}
	}
	err := ValidateConfig(Stage{Name: "plain"}, map[string]any{"a": 1})
	if err == nil || err.Error() != `stage "plain" takes no config` {
		t.Errorf("a stage without a schema: %v", err)
	}
}

func TestShape(t *testing.T) {
	s := Shape{Sym("B"), Sym("T_mel"), Fixed(80)}
	if s.String() != "[B,T_mel,80]" {
		t.Error(s.String())
	}
	got, err := s.Resolve(Bucket{"T_mel": 173}.Values(4))
	if err != nil || !reflect.DeepEqual(got, []int{4, 173, 80}) {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := s.Resolve(map[string]int{"B": 1}); err == nil {
		t.Error("a symbol without a value was resolved")
	}
}

func TestFrames(t *testing.T) {
	centred, plain := Features{NFFT: 1024, HopLength: 256, Center: true}, Features{NFFT: 1024, HopLength: 256}
	for _, c := range []struct {
		f       Features
		n, want int
	}{
		{centred, 0, 0}, {centred, 1, 1}, {centred, 255, 1}, {centred, 256, 2}, {plain, 1023, 0}, {plain, 1024, 1},
		{plain, 1280, 2},
	} {
		if got := c.f.Frames(c.n); got != c.want {
			t.Errorf("centre %v, %d samples: %d frames, want %d", c.f.Center, c.n, got, c.want)
		}
	}
}

func TestFeaturesHash(t *testing.T) {
	b, err := ParseBundle("bundle.json", read(t, pico))
	if err != nil {
		t.Fatal(err)
	}
	// The SHA-256 of the contract's canonical JSON, computed by another program.
	const want = "84060c1644e18ad245757c7fab1d183c3d3051612c0dd9e086e16ea4472c1a7f"
	if got := b.Features.Hash(); got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
	other := b.Features
	other.FMax--
	if other.Hash() == want {
		t.Error("another contract has the same hash")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(read(f, pico))
	f.Add(read(f, features))
	f.Add([]byte(`{"version":1}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := ParseBundle("f", data); err == nil {
			b.Features.Hash()
		}
		if p, err := ParsePlugin("f", data); err == nil {
			p.Command()
			for _, s := range p.Stages {
				ValidateConfig(s, map[string]any{"gain": 1.5})
			}
		}
	})
}

// A schema from an untrusted plugin must not read files of this machine, and its cost must be bounded by its size.
func TestConfigSchemaIsBounded(t *testing.T) {
	gain := map[string]any{"$defs": map[string]any{"gain": map[string]any{"type": "number"}, "a/b": true},
		"properties": map[string]any{
			"gain": map[string]any{"$ref": "#/$defs/gain"}, "b": map[string]any{"$ref": "#/$defs/a~1b"},
		}}
	doubling := map[string]any{"last": true}
	for i := range 40 {
		next := map[string]any{"$ref": "#/$defs/last"}
		if i > 0 {
			next = map[string]any{"$ref": fmt.Sprintf("#/$defs/d%d", i-1)}
		}
		doubling[fmt.Sprintf("d%d", i)] = map[string]any{"allOf": []any{next, next}}
	}
	ref := func(to string) map[string]any { return map[string]any{"$ref": to} }
	for _, c := range []struct {
		name   string
		schema map[string]any
		want   string // in the error; empty for none
	}{
		{"local", gain, ""},
		{"device", ref("file:///dev/zero"), "nothing outside the schema"},
		{"file", ref("../../../../etc/passwd"), "nothing outside the schema"},
		{"network", ref("http://127.0.0.1:1/schema"), "nothing outside the schema"},
		{"the host's own", ref("bundle.schema.json"), "nothing outside the schema"},
		{"an anchor", ref("#gain"), "nothing outside the schema"},
		{"nowhere", ref("#/$defs/gain"), "is missing"},
		{"itself", ref("#"), "more than 10000 parts"},
		{"2^40 of one", map[string]any{"$ref": "#/$defs/d39", "$defs": doubling}, "more than 10000 parts"},
		{"another base", map[string]any{"$id": "file:///dev/"}, "$id is not supported"},
		{"another draft", map[string]any{"$schema": "file:///dev/zero"}, "nothing outside the schema"},
	} {
		err := ValidateConfig(Stage{Name: "x", Config: c.schema}, map[string]any{"gain": 1.5})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

// TestComplete: defaults fill what a configuration omits, and nothing else.
func TestComplete(t *testing.T) {
	s := Stage{Config: map[string]any{"properties": map[string]any{
		"a": map[string]any{"default": 1.5}, "b": map[string]any{"default": 2.0}, "c": map[string]any{"type": "number"},
	}}}
	given := map[string]any{"b": 0.0}
	if got, want := s.Complete(given), map[string]any{"a": 1.5, "b": 0.0}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if len(given) != 1 {
		t.Errorf("the given configuration became %v", given)
	}
	if got := (&Stage{}).Complete(nil); len(got) != 0 {
		t.Errorf("%v of a stage without configuration", got)
	}
}
