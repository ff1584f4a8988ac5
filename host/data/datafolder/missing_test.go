package datafolder

import (
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// TestMissing: all folders that are not there are named at once.
func TestMissing(t *testing.T) {
	in := []catalog.Instance{
		{Name: "mix", Data: map[string]catalog.DataFolder{"noise": {Path: "/none/a"}, "rooms": {Path: t.TempDir()}}},
		{Name: "far", Data: map[string]catalog.DataFolder{"rooms": {Path: "/none/b"}}},
	}
	_, err := OpenAll(t.Context(), in, "", nil)
	want := "there are no such data folders: mix.noise: /none/a, far.rooms: /none/b"
	advice := "name the folders where they are with --plugin-data mix.noise=DIR --plugin-data far.rooms=DIR"
	if err == nil || err.Error() != want || hint.Of(err) != advice {
		t.Errorf("%v (%s)", err, hint.Of(err))
	}
}
