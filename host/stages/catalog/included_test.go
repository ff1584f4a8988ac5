package catalog

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestIncluded: the list has the plugins of this repository with their stages, whose names are taken.
func TestIncluded(t *testing.T) {
	files, _ := filepath.Glob("../../../plugins/*/plugin.json")
	got := map[string][]string{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		p, err := manifest.ParsePlugin(file, data)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range p.Stages {
			got[p.ID] = append(got[p.ID], s.Name)
			if by := Taken(s.Name, nil); by != p.ID+", which comes with xtts-host" {
				t.Errorf("%s is taken by %q", s.Name, by)
			}
		}
	}
	if !reflect.DeepEqual(got, included) {
		t.Errorf("the plugins are %v, listed are %v", got, included)
	}
	other := []Entry{{Dir: "/p/x"}, {Dir: "/p/o", Manifest: &manifest.Plugin{
		ID: "other", Stages: []manifest.Stage{{Name: "crackle"}},
	}}}
	for name, want := range map[string]string{
		"features": "features, which comes with xtts-host",
		"crackle":  "other in /p/o", "other": "other in /p/o", "free": "",
	} {
		if by := Taken(name, other); by != want {
			t.Errorf("%s is taken by %q, want %q", name, by, want)
		}
	}
}
