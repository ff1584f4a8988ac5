package frame

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// count returns the samples 1, 2, ..., n.
func count(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i + 1)
	}
	return out
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name           string
		center         bool
		pad            string
		length, t, end int
		want           []float32
	}{
		{"inside", true, "constant", 4, 1, 9, []float32{2, 3, 4, 5}},
		{"odd length", true, "constant", 5, 1, 9, []float32{2, 3, 4, 5, 6}},
		{"begins in the padding", true, "constant", 4, 0, 9, []float32{0, 0, 1, 2}},
		{"begins reflected", true, "reflect", 4, 0, 9, []float32{3, 2, 1, 2}},
		{"ends in the padding", true, "constant", 8, 2, 9, []float32{3, 4, 5, 6, 7, 8, 9, 0}},
		{"ends reflected", true, "reflect", 8, 2, 9, []float32{3, 4, 5, 6, 7, 8, 9, 8}},
		{"beyond both ends", true, "constant", 6, 0, 1, []float32{0, 0, 0, 1, 0, 0}},
		{"not centred", false, "constant", 4, 1, 9, []float32{4, 5, 6, 7}},
		{"not centred and longer than the mel frame", false, "constant", 8, 0, 9, []float32{0, 0, 1, 2, 3, 4, 5, 6}},
		{"not centred and shorter than the mel frame", false, "constant", 2, 1, 9, []float32{5, 6}},
	} {
		cutter, err := New(manifest.Features{SampleRate: 8000, NFFT: 4, HopLength: 3, Center: c.center, PadMode: c.pad},
			c.length)
		if err != nil {
			t.Fatal(err)
		}
		if got := cutter.Cut(c.t, count(c.end), make([]float32, c.length)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestCount(t *testing.T) {
	for _, c := range []struct {
		center bool
		wave   []float32
		frames int
		want   string
	}{
		{true, nil, 0, ""},
		{true, count(1), 1, ""},
		{true, count(9), 4, ""},
		{false, nil, 0, ""},
		{false, count(9), 2, ""},
		{false, count(3), 0, "3 samples with a window of 4: the waveform is shorter than one window"},
		{true, []float32{0, float32(math.Inf(-1))}, 0, "sample 1 is -Inf"},
	} {
		cutter, err := New(
			manifest.Features{SampleRate: 8000, NFFT: 4, HopLength: 3, Center: c.center, PadMode: "constant"}, 100)
		if err != nil {
			t.Fatal(err)
		}
		n, err := cutter.Count(c.wave)
		if n != c.frames || (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%v, centred %v: %d frames, %v; want %d, %q", c.wave, c.center, n, err, c.frames, c.want)
		}
		if strings.HasSuffix(c.want, "window") && !errors.Is(err, ErrTooShort) {
			t.Errorf("%v is not ErrTooShort", err)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*manifest.Features)
		want   string
	}{
		{func(f *manifest.Features) { f.SampleRate = 0 }, "features: sample_rate is 0"},
		{
			func(f *manifest.Features) { f.NFFT = 1023 },
			"features: n_fft is 1023: an even number of at least 4 is needed",
		},
		{func(f *manifest.Features) { f.HopLength = 0 }, "features: hop_length is 0"},
		{func(f *manifest.Features) { f.PadMode = "edge" }, `features: pad_mode "edge" is unknown`},
	} {
		f := manifest.Features{SampleRate: 22050, NFFT: 1024, HopLength: 256, Center: true, PadMode: "reflect"}
		c.change(&f)
		if _, err := New(f, 1024); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestMirror(t *testing.T) {
	want := []int{1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2}
	for i, w := range want {
		if got := mirror(i-5, 3); got != w {
			t.Errorf("position %d of 3 is reflected to %d, want %d", i-5, got, w)
		}
	}
	if got := mirror(-7, 1); got != 0 {
		t.Errorf("position -7 of 1 is reflected to %d", got)
	}
}
