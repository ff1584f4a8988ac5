package summary

import (
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestFaultsOfBefore(t *testing.T) {
	state := []manifest.State{{Name: "mean"}}
	for _, c := range []struct {
		name     string
		exporter int
		eval     bool
		state    []manifest.State
		masks    bool
		want     []string
	}{
		{"without a number", 0, true, nil, true, []string{"self.training", "all keys"}},
		{"state was in evaluation mode", 0, true, state, true, []string{"all keys"}},
		{"a softmax without a mask", 0, true, nil, false, []string{"self.training"}},
		{"no eval graph, no attention", 0, false, nil, false, nil},
		{"exported again", checkedExporter, true, nil, true, nil},
	} {
		m := &manifest.Bundle{
			Exporter: c.exporter, State: c.state, Graphs: []manifest.Graph{{File: "train", Kind: "train"}},
		}
		if c.eval {
			m.Graphs = append(m.Graphs, manifest.Graph{File: "eval", Kind: "eval"})
		}
		got := faultsOfBefore(m, func(string) bool { return c.masks })
		if len(got) != len(c.want) {
			t.Errorf("%s: %q, want %d", c.name, got, len(c.want))
			continue
		}
		for i, text := range c.want {
			if !strings.Contains(got[i], text) || !strings.Contains(got[i], "exporting again") {
				t.Errorf("%s: %q, want %q", c.name, got[i], text)
			}
		}
	}
}
