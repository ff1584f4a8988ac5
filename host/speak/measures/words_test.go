package measures

import (
	"math"
	"testing"
)

func TestWordErrors(t *testing.T) {
	for _, c := range []struct {
		text, transcript string
		rate             float64
		characters       bool
		ok               bool
	}{
		{"The kettle sings, before it boils.", "the kettle sings before it boils", 0, false, true},
		{"The kettle sings.", "the cattle sing", 2.0 / 3, false, true},
		{"The kettle sings.", "", 1, false, true},
		{"one", "one two three", 2, false, true},
		{"Don't stop – well-known", "dont stop well known", 0, false, true},
		{"ÄRGER über Öl", "ärger über öl", 0, false, true},
		{"今天天气很好。", "今天 天汽很好", 1.0 / 6, true, true},
		{"สวัสดี", "สวัสด", 1.0 / 6, true, true},
		{"سلام دنیا؟", "سلام دنیا", 0, false, true},
		{"?!", "what", 0, false, false},
	} {
		rate, characters, ok := WordErrors(c.text, c.transcript)
		if math.Abs(rate-c.rate) > 1e-12 || characters != c.characters || ok != c.ok {
			t.Errorf("%q transcribed as %q: %g, %v, %v", c.text, c.transcript, rate, characters, ok)
		}
	}
}
