package manifest

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/hint"
)

const withData = `{
	"id": "noise", "version": "1", "protocol": 2, "argv": ["true"],
	"stages": [{
		"name": "mix", "kind": "KIND", "deterministic": true, EXTRA
		"inputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"]}],
		"outputs": [{"name": "x", "dtype": "f32", "shape": ["B", "T"]}],
		"data": {
			"rooms": {"kind": "files", "optional": true}, "noise": {"kind": "audio", "description": "recordings of noise"}
		}
	}]
}`

// TestData: data folders need protocol 2, a name, and a kind, and the outputs of their stages are not cached.
func TestData(t *testing.T) {
	valid := strings.NewReplacer("KIND", "augment", "EXTRA", "").Replace(withData)
	p, err := ParsePlugin("plugin.json", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	want := DataFolder{Description: "recordings of noise", Kind: AudioData}
	if s := p.Stages[0]; s.Data["noise"] != want || strings.Join(s.DataNames(), " ") != "noise rooms" ||
		!s.Data["rooms"].Optional {
		t.Errorf("%+v", s.Data)
	}
	for _, c := range []struct{ from, to, want string }{
		{`"protocol": 2`, `"protocol": 1`, `plugin.json: stage "mix": data needs protocol 2`},
		{`"kind": "audio"`, `"kind": "sound"`, `plugin.json: stages.0.data.noise.kind: `},
		{`"kind": "audio", `, ``, `plugin.json: stages.0.data.noise: `},
		{`"noise":`, `"a.b":`, `plugin.json: top level: 'a.b' does not match`},
		{`"optional": true`, `"optional": 1`, `plugin.json: stages.0.data.rooms.optional: `},
	} {
		if _, err := ParsePlugin("plugin.json", []byte(strings.Replace(valid, c.from, c.to, 1))); err == nil ||
			!strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.to, err, c.want)
		}
	}
	cacheable := strings.NewReplacer("KIND", "preprocess", "EXTRA", `"cacheable": true,`).Replace(withData)
	if _, err := ParsePlugin("plugin.json", []byte(cacheable)); err == nil ||
		!strings.Contains(err.Error(), `stage "mix": a cacheable stage cannot have data`) {
		t.Error(err)
	}
}

// TestBundleNamesNoFolder: a bundle may not choose a folder of the machine.
func TestBundleNamesNoFolder(t *testing.T) {
	for _, entry := range []string{
		`{"name": "a", "data": {"noise": "/home/me"}}`,
		`{"name": "x", "one_of": [{"name": "b"}, {"name": "a", "data": {"noise": "/home/me"}}]}`,
		`{"name": "x", "some_of": [{"name": "a", "data": {"noise": "/home/me"}}]}`,
	} {
		_, err := ParseBundle("bundle.json", []byte(`{"version": 1, "pipeline": [`+entry+`]}`))
		if err == nil || !strings.Contains(err.Error(), `instance "a": a bundle may not name a data folder`) ||
			!strings.Contains(hint.Of(err), "--plugin-data a.noise=DIR") {
			t.Errorf("%s: %v; %s", entry, err, hint.Of(err))
		}
	}
}
