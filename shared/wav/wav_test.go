package wav

import (
	"slices"
	"testing"
)

func TestFile(t *testing.T) {
	want := "RIFF\x28\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x80\xbb\x00\x00\x00\x77\x01\x00\x02\x00" +
		"\x10\x00data\x04\x00\x00\x00\x01\x00\xfe\xff"
	if got := string(File(48000, []int16{1, -2})); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestSample(t *testing.T) {
	var got []int16
	for _, v := range []float32{0, 0.5, -1, 1, 3, -3, 1.4 / 32768, -1.6 / 32768} {
		got = append(got, Sample(v))
	}
	if want := []int16{0, 16384, -32768, 32767, 32767, -32768, 1, -2}; !slices.Equal(got, want) {
		t.Errorf("%d, want %d", got, want)
	}
}
