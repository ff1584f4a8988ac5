package plugintest

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestData: a stage that needs recordings passes without a folder, which is made and removed again, and with one. Other
// folders have to be named.
func TestData(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	dir := build(t, "../../../plugins/testdata/noise", "noise")
	entry, err := catalog.Open(dir)
	bundle, err2 := ortgraphs.Open(pico, t.TempDir())
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	run := func(data map[string]string) error {
		log := slog.New(slog.DiscardHandler)
		r, err := Run(t.Context(), Config{Plugin: entry, Bundle: bundle, Data: data, Log: log})
		if err == nil {
			for name, why := range failed(t, r, "noise") {
				err = errors.Join(err, errors.New(name+": "+why))
			}
		}
		return err
	}
	if err := run(nil); err != nil {
		t.Error(err)
	}
	left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*xtts-host-noise-*"))
	if len(left) != 0 || err != nil {
		t.Error(left, err)
	}
	wrong := t.TempDir()
	if err := os.WriteFile(filepath.Join(wrong, "a.wav"), []byte("no audio"), 0o666); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"noise":       "stage noise: data folder noise: " + wrong + ": no recording can be used",
		"noise.noise": "stage noise: data folder noise: " + wrong + ": no recording can be used",
		"nose":        "--plugin-data nose: no stage of the plugin has such a data folder",
	} {
		if err := run(map[string]string{name: wrong}); err == nil || !strings.HasPrefix(err.Error(), want) ||
			hint.Of(err) == "" {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	declared := &entry.Manifest.Stages[0]
	files := declared.Data["noise"]
	files.Kind = "files"
	declared.Data["noise"] = files
	want := `stage noise: the stage needs data folder "noise"`
	if err := run(nil); err == nil || err.Error() != want || hint.Of(err) != "name it with --plugin-data noise=DIR" {
		t.Errorf("%v, want %s", err, want)
	}
}
