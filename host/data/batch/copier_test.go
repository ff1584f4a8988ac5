package batch

import (
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestFrameLengths(t *testing.T) {
	counted := func(name, lengths, origin string) manifest.TensorSpec {
		return manifest.TensorSpec{Name: name, Lengths: lengths, Origin: origin}
	}
	for _, tt := range []struct {
		inputs []manifest.TensorSpec
		want   string
	}{
		{nil, ""},
		{[]manifest.TensorSpec{counted("speaker_ids", "", "dataset")}, ""},
		{
			[]manifest.TensorSpec{
				counted("text", "text_lengths", "dataset"), counted("waveform", "waveform_lengths", "dataset"),
			},
			"text_lengths",
		},
		{
			[]manifest.TensorSpec{
				counted("text", "text_lengths", "dataset"), counted("mel", "mel_lengths", "stage"),
				counted("ref", "ref_lengths", "stage"),
			},
			"mel_lengths",
		},
	} {
		if got := frameLengths(tt.inputs); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.inputs, got, tt.want)
		}
	}
}

func TestSumOfLengths(t *testing.T) {
	lengths := []byte{3, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0}
	if whole, more := sum(lengths, 0), sum(lengths, 2); whole != 260 || more != 264 {
		t.Errorf("got %g and %g, want 260 and 264: an empty row counts nothing", whole, more)
	}
}
