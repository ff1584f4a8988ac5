package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func chance(p float64) *manifest.Probability {
	return &manifest.Probability{Points: [][2]float64{{0, p}}}
}

// grouped is a pipeline with a group, of which the members lengthen rows.
func grouped() ([]manifest.StageInstance, []Entry) {
	entries := augmentEntries()
	stages := entries[len(entries)-1].Manifest.Stages
	for i, growth := range map[int]float64{0: 1.5, 1: 2} {
		stages[i].MaxGrowth = growth
	}
	ports := m("waveform", "waveform", "waveform_lengths", "waveform_lengths")
	noise := inst("hiss", "noise", ports, m("waveform", "waveform"))
	hum := inst("hum", "noise", ports, m("waveform", "waveform"))
	shift := inst("shift", "shift", m("waveform", "waveform"), m("waveform", "waveform"))
	return []manifest.StageInstance{
		{Name: "group", P: chance(0.5), OneOf: []manifest.StageInstance{noise, hum, shift}}, target, reference,
	}, entries
}

// TestGroupsAreFlat: a resolved pipeline has an instance for each member of a group, and room for what it may lengthen.
func TestGroupsAreFlat(t *testing.T) {
	pipeline, entries := grouped()
	r, err := Resolve(pipeline, entries, testTypes())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range r.Instances {
		text := i.Name
		if i.Group != nil {
			text += " of " + i.Group.Name
		}
		got = append(got, text)
		if (i.Group == &pipeline[0]) != i.Chosen() {
			t.Errorf("%s: group %p, chosen %v", i.Name, i.Group, i.Chosen())
		}
	}
	want := []string{"hiss of group", "hum of group", "shift of group", "target", "reference"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got := strings.Join(r.Summaries(), " -> "); got != "one of (hiss, hum, shift) 50 % -> target -> reference" {
		t.Error(got)
	}
	for count, want := range map[int]float64{1: 2, 2: 3, 3: 4.5} {
		pipeline[0].OneOf, pipeline[0].SomeOf = nil, pipeline[0].Members()
		pipeline[0].Count = &manifest.Count{Low: 1, High: count}
		if r, err = Resolve(pipeline, entries, testTypes()); err != nil || r.MaxGrowth != want {
			t.Errorf("some of %d: growth %g, want %g, %v", count, r.MaxGrowth, want, err)
		}
	}
	pipeline, entries = grouped()
	if r, err = Resolve(pipeline, entries, testTypes()); err != nil || r.MaxGrowth != 2 {
		t.Errorf("one of: growth %g, %v", r.MaxGrowth, err)
	}
}

func TestChosenStagesRefused(t *testing.T) {
	with := func(change func(p []manifest.StageInstance)) []manifest.StageInstance {
		p, _ := grouped()
		change(p)
		return p
	}
	const needs = `stage "logmel" is of kind preprocess: without it, a row has no mel_spectrograms, mel_lengths`
	for _, tt := range []struct {
		pipeline   []manifest.StageInstance
		want, hint string
	}{
		{
			with(func(p []manifest.StageInstance) { p[1].P = chance(0.5) }),
			`pipeline: instance "target": it has p, but ` + needs, "leave p out",
		},
		{
			with(func(p []manifest.StageInstance) { p[0].OneOf[0], p[1] = p[1], p[0].OneOf[0] }),
			`pipeline: instance "target": it is a member of group, but ` + needs, "make it an entry of its own",
		},
		{
			with(func(p []manifest.StageInstance) { p[0].P = chance(30) }),
			"pipeline[0] (group): p is 30, but a probability is 0 to 1", "for 30 percent, write 0.3",
		},
	} {
		_, entries := grouped()
		_, err := Resolve(tt.pipeline, entries, testTypes())
		if err == nil || err.Error() != tt.want || hint.Of(err) != tt.hint {
			t.Errorf("%v (%s)\nwant %s (%s)", err, hint.Of(err), tt.want, tt.hint)
		}
	}
}

// TestAugmentSomeRows: NAME:P is for a share of the rows, and no entry of a group lends its name or its place.
func TestAugmentSomeRows(t *testing.T) {
	pipeline, entries := grouped()
	pipeline[0].OneOf[1].Name = "noise"
	got, err := Augment(pipeline, []string{"aug/noise:0.25", "shift:1e-2"}, entries)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, i := range got {
		names = append(names, i.Summary())
	}
	want := []string{"one of (hiss, noise, shift) 50 %", "noise-2 25 %", "shift-2 1 %", "target", "reference"}
	if !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	for _, tt := range []struct{ name, want, hint string }{
		{"noise:30", "--augment noise:30: 30 is no probability of 0 to 1", "for 30 percent, write noise:0.3"},
		{"noise:", `--augment noise:: "" is no probability of 0 to 1`, "write noise:0.3 for 30 percent of the rows"},
		{"noise:-1", `--augment noise:-1: "-1" is no probability of 0 to 1`, "write noise:0.3 for 30 percent of the rows"},
		{"noise:nan", `--augment noise:nan: "nan" is no probability of 0 to 1`, "write noise:0.3 for 30 percent of the rows"},
		{"noise:0.5:1", `--augment noise:0.5:1: "0.5:1" is no probability of 0 to 1`, "write noise:0.3 for 30 percent of the rows"},
	} {
		_, err := Augment(pipeline, []string{tt.name}, entries)
		if err == nil || err.Error() != tt.want || hint.Of(err) != tt.hint {
			t.Errorf("%q:\ngot  %v (%s)\nwant %s (%s)", tt.name, err, hint.Of(err), tt.want, tt.hint)
		}
	}
}
