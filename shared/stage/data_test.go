package stage

import (
	"testing"

	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// TestDataFolders: a stage gets its folders by name, and each file with its path.
func TestDataFolders(t *testing.T) {
	got := dataFolders(map[string]*stagepb.DataFolder{
		"noise": {Path: "/data/noise", Files: []*stagepb.DataFile{
			{Name: "a.wav", Size: 3, Sha256: []byte{1}}, {Name: "street/b.wav", Size: 1 << 40, Sha256: []byte{2}},
		}},
		"rooms": {Path: "/rooms"},
	})
	noise := got["noise"]
	if len(got) != 2 || noise.Path != "/data/noise" || len(noise.Files) != 2 || got["rooms"].Path != "/rooms" {
		t.Fatal(got)
	}
	if f := noise.Files[1]; f.Name != "street/b.wav" || f.Size != 1<<40 || f.Path() != "/data/noise/street/b.wav" ||
		f.SHA256[0] != 2 {
		t.Errorf("%+v at %s", f, f.Path())
	}
}
