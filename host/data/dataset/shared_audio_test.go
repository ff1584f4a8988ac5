package dataset

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio"
)

// TestSharedAudio: a plugin that reads a file has the bits of the clip that is the file.
func TestSharedAudio(t *testing.T) {
	files, err := filepath.Glob("../../../shared/audio/testdata/*.*")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		if filepath.Ext(file) == ".md" {
			continue
		}
		for _, rate := range []int{22050, 24000, 44100} {
			row, err := OpenClip(file, rate)
			if err != nil {
				t.Fatal(err)
			}
			want := make([]float32, row.Samples)
			if err := NewDecoder(rate).Decode(want, row, 0); err != nil {
				t.Fatal(err)
			}
			got, err := audio.Read(file, rate)
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s at %d Hz: %d samples, unlike the %d of the clip; %v", file, rate, len(got), len(want), err)
			}
		}
	}
}
