package synthesize

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
)

// TestAsks: the bundle of a run says whether speaking needs a recording of the voice. A run that cannot speak says why.
func TestAsks(t *testing.T) {
	for graph, want := range map[string]string{
		"builtin:myxtts-nano":              "true",
		"builtin:none":                     "the bundle of the run cannot be read",
		"../../../ortgraphs/testdata/pico": "the bundle of the run, myxtts-pico, has no graphs that speak",
		"/nowhere":                         "the bundle of the run is not at /nowhere: no such file or directory",
		"-":                                "config.yaml: no such file or directory: so the bundle of the run is not ",
	} {
		dir := t.TempDir()
		if graph != "-" {
			text := fmt.Appendf(nil, "graph: %q  # flag\n", graph)
			if err := os.WriteFile(filepath.Join(dir, rundir.SettingsFile), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		voice, err := Asks(dir)
		got := fmt.Sprint(voice)
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", graph, got, want)
		}
	}
}
