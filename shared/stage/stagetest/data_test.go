package stagetest

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestDataFolders: recordings that the stage needs are made, optional folders are left out, and others must be named.
func TestDataFolders(t *testing.T) {
	spec := manifest.Stage{Name: "mix", Data: map[string]manifest.DataFolder{
		"noise": {Kind: manifest.AudioData}, "rooms": {Kind: manifest.AudioData, Optional: true},
	}}
	o := Options{Features: manifest.Features{SampleRate: 8000}}
	all, err := dataFolders(t, spec, o)
	if err != nil || len(all) != 1 || len(all["noise"].Files) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	samples, err := audio.Read(all["noise"].Path+"/"+all["noise"].Files[2].Name, 8000)
	if err != nil || len(samples) != 12000 || samples[0] == samples[1] {
		t.Errorf("%d samples, %v", len(samples), err)
	}
	o.Data = map[string]string{"nose": t.TempDir()}
	want := `stage "mix" declares no data folder "nose"`
	if _, err := dataFolders(t, spec, o); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	o.Data, spec.Data["lists"] = nil, manifest.DataFolder{Kind: manifest.FileData}
	want = `the stage needs folder "lists": set Data to map[string]string{"lists": DIR}`
	if _, err := dataFolders(t, spec, o); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestDefaultFeatures: they are those of the embedded model.
func TestDefaultFeatures(t *testing.T) {
	data, err := os.ReadFile("../../../ortgraphs/builtin/myxtts-nano/bundle.json")
	if err != nil {
		t.Fatal(err)
	}
	var bundle struct{ Features manifest.Features }
	if err := json.Unmarshal(data, &bundle); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(bundle.Features, defaultFeatures) {
		t.Errorf("%+v, want %+v", defaultFeatures, bundle.Features)
	}
}
