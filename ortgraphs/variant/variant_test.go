package variant_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/variant"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestOtherBundles: a bundle that lacks what a change is made of gives an error that names the bundle.
func TestOtherBundles(t *testing.T) {
	const pico = "../testdata/pico"
	bare := func(_ string, m *manifest.Bundle) error {
		*m = manifest.Bundle{Version: m.Version, Name: m.Name}
		return nil
	}
	for want, change := range map[string]variant.Change{
		`it has no graph of kind "eval"`:         variant.WithoutEval,
		`it has no graph of kind "train"`:        variant.Players(func(string) bool { return true }, nil),
		"it has no parameter " + variant.StateOf: variant.State,
		"it has no training graph":               variant.Idle,
		"it has no matrix a.weight":              variant.Adapter("a.weight"),
		"it has no stage instance reference":     variant.Frozen,
	} {
		_, err := variant.Rewrite(pico, filepath.Join(t.TempDir(), "bundle"), bare, change)
		if err == nil || !strings.HasPrefix(err.Error(), "bundle "+pico+": "+want) {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
