package tempo

import (
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "tempo", New, defaults(), `{"tempo_min": 0.5, "tempo_max": 0.5}`,
		`{"tempo_min": 2, "tempo_max": 2}`)
}

func at(t *testing.T, tempo float64) *effecttest.Effect {
	return effecttest.Must(t, New(), effecttest.Options{
		Config: fmt.Sprintf(`{"tempo_min": %g, "tempo_max": %[1]g}`, tempo),
	})
}

// TestPitch: a voice of a steady pitch keeps it, and its waveform: the result is the signal that goes on longer or ends
// earlier, with a correlation of more than 0.999.
func TestPitch(t *testing.T) {
	const n = 40000
	for _, period := range []int{75, 150, 301} { // 294, 147 and 73 Hz
		x := make([]float32, 2*n)
		for i := range x {
			for h := 1; h <= 10; h++ {
				x[i] += float32(0.1 * math.Sin(2*math.Pi*float64(h*i)/float64(period)+float64(h*h)))
			}
		}
		for _, tempo := range []float64{0.8, 0.95, 1.1, 1.5, 2} {
			out := at(t, tempo).Apply(t, x[:n], 1)
			if want := int(math.Round(n / tempo)); len(out) != want {
				t.Fatalf("%d samples at a tempo of %g, want %d", len(out), tempo, want)
			}
			var product, a, b float64
			for i, y := range out[:len(out)-1000] { // at the end, the input ends
				product += float64(y) * float64(x[i])
				a += float64(y) * float64(y)
				b += float64(x[i]) * float64(x[i])
			}
			if c := product / math.Sqrt(a*b); c < 0.999 {
				t.Errorf("period of %d samples at a tempo of %g: the correlation is %.4f", period, tempo, c)
			}
		}
	}
}

// TestTiming: what happens at a time of the row happens at that time divided by the tempo, within 30 ms.
func TestTiming(t *testing.T) {
	x := make([]float32, 60000)
	noise := effecttest.Noise(len(x))
	for _, start := range []int{10000, 30000, 50000} {
		copy(x[start:start+3000], noise[start:])
	}
	for _, tempo := range []float64{0.8, 1.25, 2} {
		out := at(t, tempo).Apply(t, x, 1)
		for _, start := range []int{10000, 30000, 50000} {
			center, power := 0.0, 0.0
			from, to := int(float64(start-4000)/tempo), int(float64(start+7000)/tempo)
			for i := from; i < min(to, len(out)); i++ {
				p := float64(out[i]) * float64(out[i])
				center += float64(i) * p
				power += p
			}
			want := float64(start+1500) / tempo
			if got := center / power; math.Abs(got-want) > 0.03*effecttest.Rate {
				t.Errorf("tempo %g: the sound about %g is about %g", tempo, want, got)
			}
		}
	}
}

// TestOne: a tempo of 1 leaves the row as it is, to the bit.
func TestOne(t *testing.T) {
	x := effecttest.Speech(30000, effecttest.Rate)
	if !effecttest.SameBits(at(t, 1).Apply(t, x, 1), x) {
		t.Error("the row changed")
	}
}

func TestDraws(t *testing.T) {
	draws, out := effecttest.Draws(t, New(), effecttest.Options{Width: 6000}, 5000, 20)
	for i, d := range draws {
		tempo := d["tempo"].(float64)
		if want := int(math.Round(5000 / tempo)); tempo < 0.9 || tempo >= 1.1 || len(out[i]) != want {
			t.Errorf("tempo %g: %d samples, want %d", tempo, len(out[i]), want)
		}
	}
}

func TestRefuses(t *testing.T) {
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		`{"tempo_min": 1.2}`: "config: tempo_min 1.2 is above tempo_max 1.1\nhint: ",
	})
}
