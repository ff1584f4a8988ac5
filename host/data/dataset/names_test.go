package dataset

import (
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestNumbered: only names of tensors that are used count: a model without them knows no numbers.
func TestNumbered(t *testing.T) {
	ix := &Index{Speakers: []string{"ben", "anna"}, Languages: []string{"en"}}
	for _, c := range []struct {
		tensor              string
		speakers, languages []string
	}{
		{"waveform", nil, nil},
		{"speaker_ids", ix.Speakers, nil},
		{"language_ids", nil, ix.Languages},
	} {
		speakers, languages := ix.Numbered([]manifest.TensorSpec{{Name: "text_lengths"}, {Name: c.tensor}})
		if !slices.Equal(speakers, c.speakers) || !slices.Equal(languages, c.languages) {
			t.Errorf("%s: %v and %v", c.tensor, speakers, languages)
		}
	}
}
