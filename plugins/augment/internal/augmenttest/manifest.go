package augmenttest

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// Spec returns the declaration of a stage. The test's folder must be a subfolder of the plugin's folder.
func Spec(t testing.TB, name string) manifest.Stage {
	t.Helper()
	data, err := os.ReadFile("../plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := manifest.ParsePlugin("plugin.json", data)
	if err != nil {
		t.Fatal(err)
	}
	s, ok := p.Stage(name)
	if !ok {
		t.Fatalf("plugin.json has no stage %q", name)
	}
	return s
}

// CheckDefaults compares a stage's default configuration with the defaults in plugin.json, key by key.
func CheckDefaults(t *testing.T, s manifest.Stage, config any) {
	t.Helper()
	stated := map[string]any{}
	for key, property := range s.Config["properties"].(map[string]any) {
		stated[key] = property.(map[string]any)["default"]
	}
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var used map[string]any
	if err := json.Unmarshal(data, &used); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(used, stated) {
		t.Errorf("the program's defaults are %v, plugin.json says %v", used, stated)
	}
}
