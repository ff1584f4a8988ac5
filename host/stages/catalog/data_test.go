package catalog

import (
	"maps"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// withData are the test entries, of which gain has data folders.
func withData() []Entry {
	entries := testEntries()
	entries[0].Manifest.Stages[0].Data = map[string]manifest.DataFolder{
		"noise": {Kind: manifest.AudioData, Description: "recordings of noise"},
		"rooms": {Kind: manifest.FileData, Optional: true},
	}
	return entries
}

// TestResolveData: an instance has the declared folders, and all that its stage needs.
func TestResolveData(t *testing.T) {
	named := func(data map[string]string) manifest.StageInstance {
		return with(gain("waveform"), func(s *manifest.StageInstance) { s.Data = data })
	}
	r, err := Resolve([]manifest.StageInstance{named(m("noise", "dir")), target, reference}, withData(), testTypes())
	if err != nil || len(r.Instances[0].Data) != 1 || r.Instances[0].Data["noise"].Path != "dir" {
		t.Fatal(err, r)
	}
	for _, c := range []struct {
		instance     manifest.StageInstance
		want, advice string
	}{
		{
			named(nil), `stage "gain" needs a folder of recordings of noise: data folder "noise"`,
			"name it with --plugin-data " + named(nil).Name + ".noise=DIR",
		},
		{named(m("noise", "a", "nose", "b")), `data: stage "gain" has no data folder "nose"`, "it has noise, rooms"},
		{named(m("noise", "")), "data: noise is an empty path", ""},
		{
			with(target, func(s *manifest.StageInstance) { s.Data = m("noise", "a"); s.Name = "first" }),
			`data: stage "logmel" has no data folder "noise"`,
			"leave data out: plugin.json of its plugin declares none",
		},
	} {
		_, err := Resolve([]manifest.StageInstance{c.instance, target, reference}, withData(), testTypes())
		want := `pipeline: instance "` + c.instance.Name + `": ` + c.want
		if err == nil || err.Error() != want || hint.Of(err) != c.advice {
			t.Errorf("%v (%s), want %s (%s)", err, hint.Of(err), want, c.advice)
		}
	}
}

// TestPlaceData: NAME is a folder of all instances, INSTANCE.NAME comes first, and both before the pipeline.
func TestPlaceData(t *testing.T) {
	one, two := gain("waveform"), gain("waveform")
	one.Name, one.Data, two.Name = "one", m("noise", "pipeline", "rooms", "pipeline"), "two.b"
	three := gain("waveform")
	three.Name, three.Data = "three", m("rooms", "pipeline")
	group := manifest.StageInstance{Name: "group", OneOf: []manifest.StageInstance{three}}
	pipeline := []manifest.StageInstance{one, two, target, group}
	got, err := PlaceData(pipeline, m("noise", "all", "two.b.noise", "second", "two.b.rooms", "rooms"), withData())
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []map[string]string{
		m("noise", "all", "rooms", "pipeline"), m("noise", "second", "rooms", "rooms"), nil,
		m("noise", "all", "rooms", "pipeline"),
	} {
		if step := manifest.Steps(got)[i]; !maps.Equal(step.Data, want) {
			t.Errorf("%s: %v, want %v", step.Name, step.Data, want)
		}
	}
	if pipeline[0].Data["noise"] != "pipeline" || len(group.OneOf[0].Data) != 1 {
		t.Error("the pipeline itself has changed")
	}
	for _, c := range []struct {
		name, advice string
		pipeline     []manifest.StageInstance
	}{
		{"nois", "did you mean noise?", pipeline},
		{"on.noise", "did you mean one.noise?", pipeline},
		{
			"impulses", "the pipeline has noise, one.noise, one.rooms, rooms, three.noise, three.rooms, two.b.noise, " +
				"two.b.rooms", pipeline,
		},
		{
			"noise", "leave the flag out, or add the stage that reads the folder with --augment",
			[]manifest.StageInstance{target},
		},
	} {
		_, err := PlaceData(c.pipeline, m(c.name, "dir"), withData())
		if err == nil || !strings.HasPrefix(err.Error(), "--plugin-data "+c.name+": no stage of the pipeline") ||
			hint.Of(err) != c.advice {
			t.Errorf("%s: %v (%s), want %s", c.name, err, hint.Of(err), c.advice)
		}
	}
}
