package plan

import (
	"reflect"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestSizesText: a checkpoint holds what makes the buckets again, and those of another --buckets are not taken.
func TestSizesText(t *testing.T) {
	b := &manifest.Bundle{
		Buckets:  []manifest.Bucket{{"T_text": 20, "T_wav": 100, "T_mel": 11, "T_ref": 70}},
		Dynamic:  manifest.Bucket{"T_text": 50, "T_wav": 400},
		Features: manifest.Features{SampleRate: 100, HopLength: 10, Center: true},
	}
	sizes := []manifest.Bucket{b.Fit(60, 9), b.Fit(400, 50)}
	text := "auto=" + sizesText(sizes)
	if text != "auto=60/9 400/50" {
		t.Errorf("got %q", text)
	}
	if got, ok, err := parseSizes(text, "auto=", b); !ok || err != nil || !reflect.DeepEqual(got, sizes) {
		t.Errorf("%v, %t, %v", got, ok, err)
	}
	for _, other := range []string{"", "auto:8=60/9", "auto=", "auto=x", "auto=60", "auto=410/9"} {
		if got, ok, _ := parseSizes(other, "auto=", b); ok {
			t.Errorf("%q gave %v", other, got)
		}
	}
}
