package resample

import (
	"math"
	"testing"
)

// The response of the filter itself, at all frequencies: -v prints a table; docs/audio.md has its bounds.
func TestResponse(t *testing.T) {
	for _, c := range []struct{ from, to int }{
		{8000, 22050}, {44100, 22050}, {48000, 22050}, {96000, 22050}, {48000, 24000},
	} {
		r := New(c.from, c.to)
		nyquist := float64(min(c.from, c.to)) / float64(c.from) // of the input's
		ripple, alias := 0.0, 0.0
		// The phases, interleaved, are a filter at up times the input's rate. Its response at w (1 is the input's
		// Nyquist frequency) is the mean of the phases' responses; their differences are the images, in the stop band.
		response := func(w float64) float64 {
			sum := 0.0
			for p, taps := range r.phases {
				for k, v := range taps {
					at := float64(k-r.half+1) - float64(p)/float64(r.up)
					sum += float64(v) * math.Cos(math.Pi*w*at)
				}
			}
			return sum / float64(r.up)
		}
		const step = 0.083
		for w := 0.0; w <= high.passEnd; w += step {
			ripple = max(ripple, math.Abs(response(w*nyquist)-1))
		}
		for w := 1.0; w < 2; w += step {
			alias = max(alias, math.Abs(response(w*nyquist)))
		}
		dB := func(v float64) float64 { return 20 * math.Log10(v) }
		t.Logf("%5d -> %5d Hz: ripple %.5f dB to 0.91 of Nyquist, beyond Nyquist at most %.1f dB", c.from, c.to,
			dB(1+ripple), dB(alias))
		if dB(1+ripple) > 1e-4 || dB(alias) > -118 {
			t.Errorf("%d -> %d: ripple %.2e, alias %.2e", c.from, c.to, ripple, alias)
		}
	}
}
