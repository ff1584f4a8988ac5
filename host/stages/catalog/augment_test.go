package catalog

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// augmentEntries has augmentations whose ports have the names that the features plugin uses.
func augmentEntries() []Entry {
	edits := func(name string, ports ...manifest.TensorSpec) manifest.Stage {
		return manifest.Stage{Name: name, Kind: manifest.Augment, Inputs: ports, Outputs: ports[:1]}
	}
	wave, waveLengths := spec("waveform", "f32", "B,T_wav", "waveform_lengths", ""),
		spec("waveform_lengths", "i32", "B", "", "")
	mel, melLengths := spec("mel_spectrograms", "f32", "B,T_mel,n_mels", "mel_lengths", ""),
		spec("mel_lengths", "i32", "B", "", "")
	plugin := Entry{Dir: "/plugins/aug", State: Verified, Manifest: &manifest.Plugin{
		ID: "aug", Version: "1", Protocol: 1, Stages: []manifest.Stage{
			edits("noise", wave, waveLengths), edits("shift", wave), edits("spec", mel, melLengths), edits("blur", mel),
			edits("words", spec("text_sequences", "i32", "B,T_text", "text_lengths", ""),
				spec("text_lengths", "i32", "B", "", "")),
		},
	}}
	return append(testEntries(), plugin)
}

// renamed is the pipeline of a bundle with other tensor names.
func renamed() []manifest.StageInstance {
	return []manifest.StageInstance{
		inst("t", "logmel", m("waveform", "wave_in", "waveform_lengths", "wave_n"),
			m("mel_spectrograms", "y", "mel_lengths", "y_n")),
		inst("r", "logmel", m("waveform", "ref_in", "waveform_lengths", "ref_n"),
			m("mel_spectrograms", "cond", "mel_lengths", "cond_n")),
	}
}

func TestAugment(t *testing.T) {
	bundle := []manifest.StageInstance{target, reference}
	noise := inst("noise", "noise", m("waveform", "waveform", "waveform_lengths", "waveform_lengths"),
		m("waveform", "waveform"))
	shift := inst("shift", "aug/shift", m("waveform", "waveform"), m("waveform", "waveform"))
	mask := inst("spec", "spec", m("mel_spectrograms", "mel_spectrograms", "mel_lengths", "mel_lengths"),
		m("mel_spectrograms", "mel_spectrograms"))
	blur := inst("blur", "blur", m("mel_spectrograms", "mel_spectrograms"), m("mel_spectrograms", "mel_spectrograms"))
	words := inst("words", "words", m("text_sequences", "text_sequences", "text_lengths", "text_lengths"),
		m("text_sequences", "text_sequences"))
	called := func(i manifest.StageInstance, name string) manifest.StageInstance { i.Name = name; return i }

	for _, tt := range []struct {
		name     string
		pipeline []manifest.StageInstance
		augment  string
		want     []manifest.StageInstance
	}{
		{"none", bundle, "", bundle},
		{"waveform before the features", bundle, "noise", []manifest.StageInstance{noise, target, reference}},
		{"spectrogram after them", bundle, "spec", []manifest.StageInstance{target, mask, reference}},
		{"several keep their order", bundle, "spec,noise,blur,aug/shift",
			[]manifest.StageInstance{noise, shift, target, mask, blur, reference}},
		{"and the other way round", bundle, "blur,aug/shift,spec,noise",
			[]manifest.StageInstance{shift, noise, target, blur, mask, reference}},
		{"names of the bundle", renamed(), "noise,spec", []manifest.StageInstance{
			inst("noise", "noise", m("waveform", "wave_in", "waveform_lengths", "wave_n"), m("waveform", "wave_in")),
			renamed()[0],
			inst("spec", "spec", m("mel_spectrograms", "y", "mel_lengths", "y_n"), m("mel_spectrograms", "y")),
			renamed()[1]}},
		{"twice the same", bundle, "spec,spec,noise,noise,spec", []manifest.StageInstance{
			noise, called(noise, "noise-2"), target, mask, called(mask, "spec-2"), called(mask, "spec-3"), reference}},
		{
			"a name that the bundle has",
			[]manifest.StageInstance{called(target, "noise"), called(reference, "noise-2")}, "noise",
			[]manifest.StageInstance{called(noise, "noise-3"), called(target, "noise"), called(reference, "noise-2")},
		},
		{"after the bundle's own augmentations", []manifest.StageInstance{shift, target, reference}, "noise",
			[]manifest.StageInstance{shift, noise, target, reference}},
		{"no match", bundle, "words", []manifest.StageInstance{target, reference, words}},
		{"no match, then a match", bundle, "words,noise", []manifest.StageInstance{noise, target, reference, words}},
		{"no features at all", nil, "noise,spec", []manifest.StageInstance{noise, mask}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			before := slices.Clone(tt.pipeline)
			var names []string
			if tt.augment != "" {
				names = strings.Split(tt.augment, ",")
			}
			got, err := Augment(tt.pipeline, names, augmentEntries())
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(tt.want) {
				t.Fatalf("got %d instances, want %d: %+v", len(got), len(tt.want), got)
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], tt.want[i]) {
					t.Errorf("instance %d:\ngot  %+v\nwant %+v", i, got[i], tt.want[i])
				}
			}
			if !reflect.DeepEqual(tt.pipeline, before) {
				t.Errorf("the given pipeline was changed: %+v", tt.pipeline)
			}
		})
	}
}

// TestAugmentedResolves checks that the result of Augment is a valid pipeline.
func TestAugmentedResolves(t *testing.T) {
	stages, err := Augment([]manifest.StageInstance{target, reference}, []string{"spec", "noise", "words", "blur"},
		augmentEntries())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve(stages, augmentEntries(), testTypes()); err != nil {
		t.Error(err)
	}
}

func TestAugmentRefuses(t *testing.T) {
	const which = "name one of these stages, or add a plugin that has it to the folder of --plugins"
	for _, tt := range []struct{ name, want, hint string }{
		{
			"nope",
			`--augment nope: no plugin has a stage "nope"; there are aug/blur, aug/noise, aug/shift, aug/spec, aug/words, ` + `augment/gain, augment/mask, augment/mix, features/envelope, features/logmel, features/pitch, lost/echo, neural/denoise, neural/dvae, other/gain`,
			which,
		},
		{"gain", `--augment gain: stage "gain" is ambiguous: write augment/gain or other/gain`,
			"rename the stage gain of one of these plugins, or take one out of the folder of --plugins: " +
				"augment, other"},
		{
			"echo", `--augment echo: stage "echo": plugin /plugins/lost is broken: executable lost is missing`,
			"make build",
		},
		{
			"logmel",
			"--augment logmel: the stage is of kind preprocess: only the pipeline of a bundle, or of a file that " +
				"--config names, has such a stage",
			"",
		},
		{"", `--augment : no plugin has a stage ""; there are aug/blur, aug/noise, aug/shift, aug/spec, aug/words, ` +
			`augment/gain, augment/mask, augment/mix, features/envelope, features/logmel, features/pitch, lost/echo, neural/denoise, neural/dvae, other/gain`,
			which},
	} {
		_, err := Augment([]manifest.StageInstance{target}, []string{tt.name}, augmentEntries())
		if err == nil || err.Error() != tt.want || hint.Of(err) != tt.hint {
			t.Errorf("%q:\ngot  %v, hint %q\nwant %s, hint %q", tt.name, err, hint.Of(err), tt.want, tt.hint)
		}
	}
}
