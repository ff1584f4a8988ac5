package main

import (
	"maps"
	"os"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestServesWhatItDeclares: the program has the stages of plugin.json, with its id and version.
func TestServesWhatItDeclares(t *testing.T) {
	data, err := os.ReadFile("plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	declared, err := manifest.ParsePlugin("plugin.json", data)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range declared.Stages {
		names = append(names, s.Name)
	}
	slices.Sort(names)
	if served := slices.Sorted(maps.Keys(plugin.Stages)); !slices.Equal(served, names) {
		t.Errorf("the program serves %v, plugin.json declares %v", served, names)
	}
	if plugin.ID != declared.ID || plugin.Version != declared.Version {
		t.Errorf("the program is %s %s, plugin.json %s %s", plugin.ID, plugin.Version, declared.ID, declared.Version)
	}
}
