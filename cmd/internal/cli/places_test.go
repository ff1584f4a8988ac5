package cli

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

// TestPlaces: each flag that names a file or a folder, in any command, is an input or an output.
func TestPlaces(t *testing.T) {
	words := []string{"file", "folder", "path"}
	for _, cmd := range runnable(New()) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			_, in := reads[f.Name]
			out := slices.Contains(writes, f.Name)
			if slices.Contains(words, usedName(f)) && !in && !out {
				t.Errorf("%s --%s names a %s: add it to reads or to writes in places.go", cmd.CommandPath(), f.Name,
					usedName(f))
			}
		})
	}
}
