package catalog

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// shape parses "B,T_wav,80".
func shape(s string) manifest.Shape {
	var out manifest.Shape
	for _, d := range strings.Split(s, ",") {
		if d == "80" {
			out = append(out, manifest.Fixed(80))
		} else if d == "100" {
			out = append(out, manifest.Fixed(100))
		} else {
			out = append(out, manifest.Sym(d))
		}
	}
	return out
}

func spec(name string, dtype manifest.DType, dims, lengths, origin string) manifest.TensorSpec {
	return manifest.TensorSpec{Name: name, DType: dtype, Shape: shape(dims), Lengths: lengths, Origin: origin}
}

func testTypes() Types {
	dataset := map[string]manifest.TensorSpec{}
	for _, t := range []manifest.TensorSpec{
		spec("text_sequences", "i32", "B,T_text", "text_lengths", ""),
		spec("text_lengths", "i32", "B", "", ""),
		spec("waveform", "f32", "B,T_wav", "waveform_lengths", ""),
		spec("waveform_lengths", "i32", "B", "", ""),
		spec("reference_waveform", "f32", "B,T_ref", "reference_lengths", ""),
		spec("reference_lengths", "i32", "B", "", ""),
	} {
		dataset[t.Name] = t
	}
	return Types{
		Dataset: dataset,
		Inputs: []manifest.TensorSpec{
			spec("text_sequences", "i32", "B,T_text", "text_lengths", "dataset"),
			spec("text_lengths", "i32", "B", "", "dataset"),
			spec("mel_spectrograms", "f32", "B,T_mel,80", "mel_lengths", "stage"),
			spec("mel_lengths", "i32", "B", "", "stage"),
			spec("reference_mel", "f32", "B,T_ref_mel,80", "reference_mel_lengths", "stage"),
			spec("reference_mel_lengths", "i32", "B", "", "stage"),
		},
		Buckets:  []manifest.Bucket{{"T_text": 64, "T_wav": 512, "T_mel": 3, "T_ref": 256, "T_ref_mel": 2}},
		Features: manifest.Features{NMels: 80},
	}
}

func testEntries() []Entry {
	logmel := manifest.Stage{
		Name: "logmel", Kind: manifest.Preprocess,
		Inputs: []manifest.TensorSpec{
			spec("waveform", "f32", "B,T_wav", "waveform_lengths", ""), spec("waveform_lengths", "i32", "B", "", "")},
		Outputs: []manifest.TensorSpec{
			spec("mel_spectrograms", "f32", "B,T_mel,n_mels", "mel_lengths", ""),
			spec("mel_lengths", "i32", "B", "", "")},
	}
	edits := func(name string, growth float64, ports ...manifest.TensorSpec) manifest.Stage {
		return manifest.Stage{Name: name, Kind: manifest.Augment, Inputs: ports, Outputs: ports[:1], MaxGrowth: growth}
	}
	gain := edits("gain", 1.5, spec("waveform", "f32", "B,T", "", ""))
	gain.Config = map[string]any{"type": "object", "additionalProperties": false, "properties": map[string]any{
		"db": map[string]any{"type": "number"},
	}}
	mask := edits("mask", 0, spec("mel", "f32", "B,T_mel,80", "lengths", ""), spec("lengths", "i32", "B", "", ""))
	mix := edits("mix", 2, spec("a", "f32", "B,T", "", ""), spec("b", "f32", "B,T", "", ""))
	envelope := manifest.Stage{Name: "envelope", Kind: manifest.Preprocess,
		Inputs:  []manifest.TensorSpec{spec("waveform", "f32", "B,T", "", "")},
		Outputs: []manifest.TensorSpec{spec("envelope", "f32", "B,T", "", "")}}
	pitch := manifest.Stage{Name: "pitch", Kind: manifest.Preprocess,
		Inputs:  []manifest.TensorSpec{spec("waveform", "f32", "B,T", "", "")},
		Outputs: []manifest.TensorSpec{spec("pitch", "f32", "B,T_pitch", "", "")}}
	dvae := manifest.Stage{Name: "dvae", Kind: manifest.Preprocess, GPU: manifest.GPURequired}
	denoise := edits("denoise", 0, spec("waveform", "f32", "B,T", "", ""))
	denoise.GPU = manifest.GPUOptional
	entry := func(id string, state State, stages ...manifest.Stage) Entry {
		return Entry{
			Dir: "/plugins/" + id, State: state,
			Manifest: &manifest.Plugin{ID: id, Version: "1", Protocol: 1, Stages: stages},
		}
	}
	broken := entry("lost", Broken, manifest.Stage{Name: "echo", Kind: manifest.Augment})
	broken.Reason, broken.Hint = "executable lost is missing", "make build"
	return []Entry{
		entry("augment", Unverified, gain, mask, mix),
		{Dir: "/plugins/docs", State: Skipped},
		entry("features", Verified, logmel, envelope, pitch),
		broken,
		entry("neural", Verified, dvae, denoise),
		entry("other", Verified, gain),
	}
}

var (
	target = manifest.StageInstance{Name: "target", Stage: "logmel",
		Inputs:  map[string]string{"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
		Outputs: map[string]string{"mel_spectrograms": "mel_spectrograms", "mel_lengths": "mel_lengths"}}
	reference = manifest.StageInstance{Name: "reference", Stage: "features/logmel",
		Inputs:  map[string]string{"waveform": "reference_waveform", "waveform_lengths": "reference_lengths"},
		Outputs: map[string]string{"mel_spectrograms": "reference_mel", "mel_lengths": "reference_mel_lengths"}}
)

func inst(name, stage string, in, out map[string]string) manifest.StageInstance {
	return manifest.StageInstance{Name: name, Stage: stage, Inputs: in, Outputs: out}
}

// m returns a port map from pairs.
func m(pairs ...string) map[string]string {
	out := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

func names(specs []manifest.TensorSpec) string {
	var out []string
	for _, s := range specs {
		out = append(out, s.String())
	}
	return strings.Join(out, "; ")
}

func TestResolve(t *testing.T) {
	pipeline := []manifest.StageInstance{
		inst("louder", "augment/gain", m("waveform", "waveform"), m("waveform", "waveform")),
		inst("env", "envelope", m("waveform", "waveform"), m("envelope", "env")),
		inst("blend", "mix", m("a", "waveform", "b", "env"), m("a", "waveform")),
		target,
		reference,
		inst("specaugment", "mask", m("mel", "mel_spectrograms", "lengths", "mel_lengths"),
			m("mel", "mel_spectrograms")),
	}
	r, err := Resolve(pipeline, testEntries(), testTypes())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(r.Dataset), "text_sequences i32[B,T_text]; text_lengths i32[B]; reference_lengths i32[B]; "+
		"reference_waveform f32[B,T_ref]; waveform f32[B,T_wav]; waveform_lengths i32[B]"; got != want {
		t.Errorf("data set tensors\n%s\nwant\n%s", got, want)
	}
	if got, want := names(r.Intermediates),
		"reference_lengths i32[B]; reference_waveform f32[B,T_ref]; waveform f32[B,T_wav]; "+
			"waveform_lengths i32[B]; env f32[B,T_wav]"; got != want {
		t.Errorf("intermediates\n%s\nwant\n%s", got, want)
	}
	if r.MaxGrowth != 3 {
		t.Errorf("max growth %v, want 3", r.MaxGrowth)
	}
	var plugins []string
	for _, e := range r.Plugins {
		plugins = append(plugins, e.Name())
	}
	if !slices.Equal(plugins, []string{"augment", "features"}) {
		t.Errorf("plugins %q", plugins)
	}
	want := []struct{ plugin, index int }{{0, 0}, {1, 0}, {0, 1}, {1, 1}, {1, 2}, {0, 2}}
	for i, w := range want {
		if got := r.Instances[i]; got.Plugin != w.plugin || got.Index != w.index || got.Name != pipeline[i].Name {
			t.Errorf("instance %d: %s is number %d of plugin %d, want %s, %d, %d", i, got.Name, got.Index, got.Plugin,
				pipeline[i].Name, w.index, w.plugin)
		}
	}
}

// prosody is the first-party stage, which has its own lengths.
var prosody = inst("prosody", "prosody", m("waveform", "waveform", "waveform_lengths", "waveform_lengths"),
	m("pitch", "pitch", "energy", "energy", "prosody_lengths", "prosody_lengths"))

// prosodyEntries are the plugins of the tests, with the ports of plugins/features.
func prosodyEntries(t *testing.T) []Entry {
	t.Helper()
	data, err := os.ReadFile("../../../plugins/features/plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := manifest.ParsePlugin("plugin.json", data)
	if err != nil {
		t.Fatal(err)
	}
	return []Entry{{Dir: "/plugins/features", State: Verified, Manifest: p}}
}

// prosodyTypes are the types of the tests, with pitch and energy as graph inputs that use lengths.
func prosodyTypes(lengths string) Types {
	types := testTypes()
	types.Inputs = append(types.Inputs, spec("pitch", "f32", "B,T_mel", lengths, "stage"),
		spec("energy", "f32", "B,T_mel", lengths, "stage"))
	return types
}

// TestResolveRecounts: a stage with its own lengths produces graph inputs. If the graph uses the lengths of its
// spectrograms for them, only the host reads the stage's own lengths. A graph that has them as an input gets them.
func TestResolveRecounts(t *testing.T) {
	resolve := func(types Types) (*Instance, string) {
		t.Helper()
		r, err := Resolve([]manifest.StageInstance{target, reference, prosody}, prosodyEntries(t), types)
		if err != nil {
			t.Fatal(err)
		}
		return &r.Instances[2], names(r.Intermediates)
	}
	data := "reference_lengths i32[B]; reference_waveform f32[B,T_ref]; waveform f32[B,T_wav]; waveform_lengths i32[B]"

	in, between := resolve(prosodyTypes("mel_lengths"))
	if !maps.Equal(in.Recounts, m("prosody_lengths", "mel_lengths")) || between != data+"; prosody_lengths i32[B]" {
		t.Errorf("counted by mel_lengths: recounts %v, intermediates %s", in.Recounts, between)
	}

	types := prosodyTypes("prosody_lengths")
	types.Inputs = append(types.Inputs, spec("prosody_lengths", "i32", "B", "", "stage"))
	if in, between = resolve(types); in.Recounts != nil || between != data {
		t.Errorf("counted by prosody_lengths: recounts %v, intermediates %s", in.Recounts, between)
	}
}

func TestResolveRefusesToRecount(t *testing.T) {
	for _, c := range []struct {
		name     string
		pipeline []manifest.StageInstance
		types    Types
		want     string
	}{
		{
			"before there is what to compare with", []manifest.StageInstance{prosody, target, reference},
			prosodyTypes("mel_lengths"),
			`pipeline: instance "prosody": output port "prosody_lengths" is bound to "prosody_lengths", but the lengths tensor of graph input "pitch" is "mel_lengths"; ` +
				`tensor "mel_lengths" is made only later, by instance "target"`,
		},
		{
			"lengths that the graph has for something else",
			[]manifest.StageInstance{target, inst("prosody", "prosody", prosody.Inputs, m(
				"pitch", "pitch", "energy", "energy", "prosody_lengths", "reference_mel_lengths",
			))},
			prosodyTypes("mel_lengths"),
			`pipeline: instance "prosody": output port "prosody_lengths" is bound to "reference_mel_lengths", but the lengths tensor of graph input "pitch" is "mel_lengths"`,
		},
		{"a graph that does not count them", []manifest.StageInstance{target, reference, prosody}, prosodyTypes(""),
			`pipeline: instance "prosody": output port "prosody_lengths" writes tensor "prosody_lengths", but no later stage and no graph input uses it`},
	} {
		if _, err := Resolve(c.pipeline, prosodyEntries(t), c.types); err == nil || err.Error() != c.want {
			t.Errorf("%s:\ngot  %v\nwant %s", c.name, err, c.want)
		}
	}
}

func TestResolveConsumesOnlyWhatIsNeeded(t *testing.T) {
	types := testTypes()
	types.Inputs = types.Inputs[:2]
	r, err := Resolve(nil, nil, types)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Dataset) != 2 || len(r.Intermediates) != 0 || r.MaxGrowth != 1 {
		t.Errorf("%+v", r)
	}
}

// TestResolveGPU resolves stages that can use a GPU, and stages that require one.
func TestResolveGPU(t *testing.T) {
	denoise := inst("clean", "denoise", m("waveform", "waveform"), m("waveform", "waveform"))
	r, err := Resolve([]manifest.StageInstance{denoise, target, reference}, testEntries(), testTypes())
	if err != nil || !r.UsesGPU(0) || r.UsesGPU(1) {
		t.Fatalf("a stage that can do without: %+v, %v", r, err)
	}
	types := testTypes()
	types.DataGPU = true
	r, err = Resolve([]manifest.StageInstance{inst("codes", "dvae", nil, nil), target, reference}, testEntries(), types)
	if err != nil || !r.UsesGPU(0) || r.UsesGPU(1) {
		t.Errorf("a stage that cannot: %+v, %v", r, err)
	}
}

func TestResolveTakesPadFromTheGraph(t *testing.T) {
	types := testTypes()
	types.Inputs = types.Inputs[:2]
	types.Inputs[0].Pad = 7
	r, err := Resolve(nil, nil, types)
	if err != nil {
		t.Fatal(err)
	}
	if r.Dataset[0].Pad != 7 {
		t.Errorf("pad %v, want 7", r.Dataset[0].Pad)
	}
}

// with returns a changed copy of a stage.
func with(s manifest.StageInstance, change func(s *manifest.StageInstance)) manifest.StageInstance {
	s.Inputs, s.Outputs = maps.Clone(s.Inputs), maps.Clone(s.Outputs)
	change(&s)
	return s
}

// gain is an augmentation of a tensor.
func gain(tensor string) manifest.StageInstance {
	return inst("louder", "augment/gain", m("waveform", tensor), m("waveform", tensor))
}

// correct is the hint for ports of a plugin that do not fit.
func correct(plugin string) string {
	return "bind another tensor in the pipeline, or correct the ports in /plugins/" + plugin + "/plugin.json"
}

// refusals are pipelines that cannot work, with the error and its hint.
var refusals = []struct {
	name     string
	pipeline []manifest.StageInstance
	types    func(t *Types)
	want     string
	hint     string
}{
	{"unknown stage", []manifest.StageInstance{inst("x", "logmell", nil, nil)}, nil,
		`pipeline: instance "x": no plugin has a stage "logmell"; there are augment/gain, augment/mask, augment/mix, features/envelope, features/logmel, features/pitch, lost/echo, neural/denoise, neural/dvae, other/gain`,
		"did you mean logmel?"},
	{"unknown plugin", []manifest.StageInstance{inst("x", "feature/logmel", nil, nil)}, nil,
		`pipeline: instance "x": no plugin has a stage "feature/logmel"; there are augment/gain, augment/mask, augment/mix, features/envelope, features/logmel, features/pitch, lost/echo, neural/denoise, neural/dvae, other/gain`,
		"did you mean features/logmel?"},
	{"ambiguous stage", []manifest.StageInstance{inst("x", "gain", nil, nil)}, nil,
		`pipeline: instance "x": stage "gain" is ambiguous: write augment/gain or other/gain`,
		"rename the stage gain of one of these plugins, or take one out of the folder of --plugins: augment, other"},
	{"stage of an included plugin", []manifest.StageInstance{inst("x", "codes", nil, nil)}, nil,
		`pipeline: instance "x": no plugin has a stage "codes"; there are augment/gain, augment/mask, augment/mix, features/envelope, features/logmel, features/pitch, lost/echo, neural/denoise, neural/dvae, other/gain`,
		"codes is a stage of the plugin inference, which comes with xtts-host: link inference into the folder of " +
			"--plugins"},
	{"plugin not built", []manifest.StageInstance{inst("x", "echo", nil, nil)}, nil,
		`pipeline: instance "x": stage "echo": plugin /plugins/lost is broken: executable lost is missing`,
		"make build"},
	{"unverified", []manifest.StageInstance{gain("waveform")}, func(t *Types) { t.RequireChecksums = true },
		`pipeline: instance "louder": stage "augment/gain": plugin /plugins/augment is unverified: `,
		"write its plugin.sum with sha256sum, or run without --require-checksums"},
	{"no GPU for it", []manifest.StageInstance{inst("codes", "dvae", nil, nil)}, nil,
		`pipeline: instance "codes": stage "dvae" of plugin neural needs a GPU, but the plugins run on the CPU`,
		"train with --data-gpu N --model-gpu M, which give the plugins a GPU, or use another stage"},
	{"name twice", []manifest.StageInstance{target, target, reference}, nil,
		`pipeline: two instances are named "target"`,
		"the random numbers of a stage depend on its name, so each entry needs one of its own"},
	{"config", []manifest.StageInstance{
		with(gain("waveform"), func(s *manifest.StageInstance) { s.Config = map[string]any{"bd": 1} }),
	}, nil, `pipeline: instance "louder": config of stage "gain": top level: unknown key "bd"`, "stage gain takes db " +
		"(number)"},
	{
		"config for a stage without one",
		[]manifest.StageInstance{with(target, func(s *manifest.StageInstance) { s.Config = map[string]any{"db": 1} })},
		nil, `pipeline: instance "target": stage "logmel" takes no config`, "",
	},
	{
		"input port not bound",
		[]manifest.StageInstance{with(target, func(s *manifest.StageInstance) { delete(s.Inputs, "waveform") })}, nil,
		`pipeline: instance "target": input port "waveform" f32[B,T_wav] of stage logmel is not bound to a tensor`, "",
	},
	{
		"output port not bound",
		[]manifest.StageInstance{with(target, func(s *manifest.StageInstance) { delete(s.Outputs, "mel_lengths") })},
		nil, `pipeline: instance "target": output port "mel_lengths" i32[B] of stage logmel is not bound to a tensor`,
		"",
	},
	{
		"unknown input port",
		[]manifest.StageInstance{with(target, func(s *manifest.StageInstance) { s.Inputs["wave"] = "waveform" })}, nil,
		`pipeline: instance "target": stage logmel has no input port "wave"; it has waveform, waveform_lengths`, "",
	},
	{
		"unknown output port",
		[]manifest.StageInstance{with(target,
			func(s *manifest.StageInstance) { s.Outputs["mel"] = "mel_spectrograms" })},
		nil, `pipeline: instance "target": stage logmel has no output port "mel"; it has mel_spectrograms, mel_lengths`,
		"",
	},
	{
		"unknown tensor",
		[]manifest.StageInstance{with(target, func(s *manifest.StageInstance) { s.Inputs["waveform"] = "wave" })}, nil,
		`pipeline: instance "target": input port "waveform": there is no tensor "wave"; tensors that fit: reference_waveform, waveform`,
		"",
	},
	{
		"tensor made later",
		[]manifest.StageInstance{
			inst("specaugment", "mask", m("mel", "mel_spectrograms", "lengths", "mel_lengths"),
				m("mel", "mel_spectrograms")),
			target,
		},
		nil,
		`pipeline: instance "specaugment": input port "mel": tensor "mel_spectrograms" is made only later, by instance "target"; tensors that fit: nothing`,
		"",
	},
	{
		"wrong dtype",
		[]manifest.StageInstance{with(target,
			func(s *manifest.StageInstance) { s.Inputs["waveform"] = "text_sequences" })},
		nil,
		`pipeline: instance "target": input port "waveform" of stage logmel needs f32[B,T_wav], but tensor "text_sequences" is i32[B,T_text]; tensors that fit: reference_waveform, waveform`,
		correct("features"),
	},
	{
		"wrong rank",
		[]manifest.StageInstance{with(target,
			func(s *manifest.StageInstance) { s.Inputs["waveform_lengths"] = "text_sequences" })},
		nil,
		`pipeline: instance "target": input port "waveform_lengths" of stage logmel needs i32[B], but tensor "text_sequences" is i32[B,T_text]; tensors that fit: reference_lengths, text_lengths, waveform_lengths`,
		correct("features"),
	},
	{
		"symbol with two meanings",
		[]manifest.StageInstance{inst("blend", "mix", m("a", "waveform", "b", "reference_waveform"),
			m("a", "waveform"))},
		nil,
		`pipeline: instance "blend": input port "b" of stage mix needs f32[B,T], but tensor "reference_waveform" is f32[B,T_ref], and T is T_wav by port "a"; tensors that fit: waveform`,
		correct("augment"),
	},
	{
		"lengths of another tensor",
		[]manifest.StageInstance{with(reference,
			func(s *manifest.StageInstance) { s.Inputs["waveform_lengths"] = "waveform_lengths" })},
		nil,
		`pipeline: instance "reference": input port "waveform_lengths" is bound to "waveform_lengths", but the lengths tensor of "reference_waveform" is "reference_lengths"`,
		"",
	},
	{
		"lengths of another output",
		[]manifest.StageInstance{with(target,
			func(s *manifest.StageInstance) { s.Outputs["mel_lengths"] = "reference_mel_lengths" })},
		nil,
		`pipeline: instance "target": output port "mel_lengths" is bound to "reference_mel_lengths", but the lengths tensor of graph input "mel_spectrograms" is "mel_lengths"`,
		"",
	},
	{
		"output does not fit the graph", []manifest.StageInstance{target, reference},
		func(t *Types) { t.Features.NMels = 100 },
		`pipeline: instance "target": output port "mel_spectrograms" of stage logmel makes f32[B,T_mel,100], but the graph input "mel_spectrograms" is f32[B,T_mel,80]`,
		correct("features"),
	},
	{
		"output makes a data set tensor",
		[]manifest.StageInstance{inst("env", "envelope", m("waveform", "waveform"),
			m("envelope", "reference_waveform"))},
		nil,
		`pipeline: instance "env": output port "envelope": tensor "reference_waveform" is produced by the data set`, "",
	},
	{
		"tensor made twice",
		[]manifest.StageInstance{target, with(target, func(s *manifest.StageInstance) { s.Name = "again" })}, nil,
		`pipeline: instance "again": output port "mel_spectrograms": tensor "mel_spectrograms" is already produced by instance "target"`,
		"",
	},
	{
		"augment moves its tensor",
		[]manifest.StageInstance{inst("louder", "augment/gain", m("waveform", "waveform"), m("waveform", "loud"))}, nil,
		`pipeline: instance "louder": port "waveform" is both input and output and must be bound to one tensor, not to "waveform" and "loud"`,
		"",
	},
	{
		"augment reads what it edits",
		[]manifest.StageInstance{inst("blend", "mix", m("a", "waveform", "b", "waveform"), m("a", "waveform"))}, nil,
		`pipeline: instance "blend": input port "b" and output port "a" are both bound to "waveform"`, "",
	},
	{
		"two outputs, one tensor",
		[]manifest.StageInstance{with(target,
			func(s *manifest.StageInstance) { s.Outputs["mel_lengths"] = "mel_spectrograms" })},
		nil,
		`pipeline: instance "target": output ports "mel_spectrograms" and "mel_lengths" are both bound to "mel_spectrograms"`,
		"",
	},
	{
		"nothing takes an output",
		[]manifest.StageInstance{target, reference, inst("env", "envelope", m("waveform", "waveform"),
			m("envelope", "env"))},
		nil,
		`pipeline: instance "env": output port "envelope" writes tensor "env", but no later stage and no graph input uses it`,
		"",
	},
	{"augmented too late", []manifest.StageInstance{target, reference, gain("waveform")}, nil,
		`pipeline: instance "louder": output port "waveform" writes tensor "waveform", but no later stage and no graph input uses it`,
		""},
	{
		"symbol without a value",
		[]manifest.StageInstance{inst("f0", "pitch", m("waveform", "waveform"), m("pitch", "pitch"))}, nil,
		`pipeline: instance "f0": output port "pitch" makes tensor "pitch" f32[B,T_pitch]: not every bucket gives T_pitch a value`,
		"",
	},
	{
		"data set symbol without a value", []manifest.StageInstance{target, reference},
		func(t *Types) { delete(t.Buckets[0], "T_ref") },
		`tensor "reference_waveform" f32[B,T_ref]: not every bucket gives T_ref a value`, "",
	},
	{"nothing makes graph inputs", []manifest.StageInstance{target}, nil,
		`graph input "reference_mel" f32[B,T_ref_mel,80]: no stage of the pipeline makes it; stages that could: features/logmel (port mel_spectrograms)` + "\n" + `graph input "reference_mel_lengths" i32[B]: no stage of the pipeline makes it; stages that could: features/logmel (port mel_lengths)`,
		""},
	{"nothing could make a graph input", []manifest.StageInstance{target, reference},
		func(t *Types) { t.Inputs = append(t.Inputs, spec("codes", "i64", "B,T_mel", "", "stage")) },
		`graph input "codes" i64[B,T_mel]: no stage of the pipeline makes it; no plugin has a stage that could`, ""},
	{"the host cannot make an input", nil, func(t *Types) { t.Inputs[0].Name = "phonemes" },
		`graph input "phonemes" i32[B,T_text] has origin dataset, but the host cannot make it; it can make ` +
			`reference_lengths, reference_waveform, text_lengths, text_sequences, waveform, waveform_lengths`, ""},
	{"the host makes another shape", nil, func(t *Types) { t.Inputs[0].Shape = shape("B,T_mel") },
		`graph input "text_sequences" is i32[B,T_mel], but the host makes i32[B,T_text]`, ""},
}

func TestResolveRefuses(t *testing.T) {
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			types := testTypes()
			if tt.types != nil {
				tt.types(&types)
			}
			_, err := Resolve(tt.pipeline, testEntries(), types)
			if err == nil {
				t.Fatal("accepted")
			}
			if err.Error() != tt.want {
				t.Errorf("got  %s\nwant %s", err, tt.want)
			}
			if got := hint.Of(err); got != tt.hint {
				t.Errorf("hint %q, want %q", got, tt.hint)
			}
		})
	}
	if _, err := Resolve([]manifest.StageInstance{target}, nil, testTypes()); err == nil || hint.Of(err) != Advice() {
		t.Errorf("no plugins: %v, hint %q", err, hint.Of(err))
	}
}

// TestResolveColumns: a stage reads and edits an input that comes from a column of the list.
func TestResolveColumns(t *testing.T) {
	types := testTypes()
	column := spec("f0", "f32", "B,T_mel", "mel_lengths", "column")
	column.Column = "f0"
	types.Dataset["f0"] = column
	types.Inputs = append(types.Inputs[:4:4], column)
	got, err := Resolve(
		[]manifest.StageInstance{target, inst("louder", "augment/gain", m("waveform", "f0"), m("waveform", "f0"))},
		testEntries(), types)
	if err != nil {
		t.Fatal(err)
	}
	if made := names(got.Dataset); !strings.Contains(made, "f0 f32[B,T_mel]") {
		t.Errorf("the host makes %s", made)
	}
	delete(types.Dataset, "f0")
	_, err = Resolve([]manifest.StageInstance{target}, testEntries(), types)
	if err == nil ||
		!strings.Contains(err.Error(), `graph input "f0" f32[B,T_mel] has origin column, but the host cannot make it`) {
		t.Error(err)
	}
}
