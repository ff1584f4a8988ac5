package dataset

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/audio"
)

// TestSharedAudio: a plugin that reads a file has the bits of the clip that is the file.
func TestSharedAudio(t *testing.T) {
	var files []string
	for _, kind := range []string{"flac", "mp3", "ogg", "opus"} {
		some, err := filepath.Glob("../../../shared/audio/testdata/*." + kind)
		if err != nil || len(some) == 0 {
			t.Fatal(kind, err)
		}
		files = append(files, some...)
	}
	for _, file := range files {
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
