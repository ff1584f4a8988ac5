package waveaug

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// certain applies every effect to every row.
func certain() config {
	c := defaults()
	c.GainProbability, c.NoiseProbability, c.PolarityProbability = 1, 1, 1
	return c
}

// generator returns the generator of a row whose key holds n, as stage.Batch creates it.
func generator(n int) *rand.Rand {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(n))
	return rand.New(rand.NewChaCha8(seed))
}

// apply draws the effects for a clip and applies them.
func (c config) apply(clip []float32, r *rand.Rand) error { return c.draw(r).apply(clip, r) }

// tone returns a clip with a pause and a change of level, so no part of it has the power of the whole.
func tone(n int) []float32 {
	clip := make([]float32, n)
	for i := range clip {
		if i%700 > 100 {
			clip[i] = float32(0.3 * math.Sin(float64(i)/9) * float64(1+i%3))
		}
	}
	return clip
}

// TestSNR: the ratio of every row is within 0.1 dB of the drawn one, for any row length.
func TestSNR(t *testing.T) {
	c := certain()
	c.SNRDBMin, c.SNRDBMax = -10, 60
	const count = 500
	var mean, worst float64
	for n := range count {
		clip := tone(102 + n*n%7919)
		out := slices.Clone(clip)
		d := c.draw(generator(n))
		if err := c.apply(out, generator(n)); err != nil {
			t.Fatal(err)
		}
		var signal, noise float64
		for i, x := range clip {
			y := d.factor * float64(x)
			signal += y * y
			noise += (float64(out[i]) - y) * (float64(out[i]) - y)
		}
		measured, drawn := 10*math.Log10(signal/noise), 10*math.Log10(d.snr)
		worst = max(worst, math.Abs(measured-drawn))
		mean += measured / count
	}
	t.Logf("worst row: %.2g dB from the drawn ratio", worst)
	if worst > 0.1 {
		t.Errorf("a row's ratio is %g dB away from the drawn one", worst)
	}
	// Uniform in [-10, 60]: mean 25, standard error of the mean 70/sqrt(12*count).
	if bound := 4 * 70 / math.Sqrt(12*count); math.Abs(mean-25) > bound {
		t.Errorf("mean ratio %g dB, want 25 +- %g", mean, bound)
	}
}

// TestNoiseIsWhiteAndGaussian checks moments and correlation of the added noise, each to within 5 standard errors.
func TestNoiseIsWhiteAndGaussian(t *testing.T) {
	const n = 200_000
	c := config{NoiseProbability: 1, SNRDBMin: 20, SNRDBMax: 20}
	clip := tone(n)
	out := slices.Clone(clip)
	if err := c.apply(out, generator(1)); err != nil {
		t.Fatal(err)
	}
	noise := make([]float64, n)
	var power float64
	for i := range clip {
		noise[i] = float64(out[i]) - float64(clip[i])
		power += noise[i] * noise[i] / n
	}
	var mean, skew, kurtosis, lag1, withSignal, signal float64
	for i, x := range noise {
		x /= math.Sqrt(power)
		mean += x / n
		skew += x * x * x / n
		kurtosis += x * x * x * x / n
		if i > 0 {
			lag1 += x * noise[i-1] / math.Sqrt(power) / n
		}
		withSignal += x * float64(clip[i])
		signal += float64(clip[i]) * float64(clip[i])
	}
	withSignal /= math.Sqrt(signal)
	for _, m := range []struct {
		name                 string
		got, want, deviation float64 // of one sample's contribution
	}{
		{"mean", mean, 0, 1}, {"skewness", skew, 0, math.Sqrt(15)}, {"kurtosis", kurtosis, 3, math.Sqrt(96)},
		{"correlation at lag 1", lag1, 0, 1}, {"correlation with the clip", withSignal / math.Sqrt(n), 0, 1},
	} {
		if bound := 5 * m.deviation / math.Sqrt(n); math.Abs(m.got-m.want) > bound {
			t.Errorf("%s of the noise is %g, want %g +- %g", m.name, m.got, m.want, bound)
		}
	}
}

// TestDraws checks shares and means over 10,000 rows to within 5 standard errors, and ranges.
func TestDraws(t *testing.T) {
	const n = 10_000
	c := config{
		GainProbability: 0.3, GainDBMin: -12, GainDBMax: 4,
		NoiseProbability: 0.2, SNRDBMin: 10, SNRDBMax: 30,
		PolarityProbability: 0.7,
	}
	var gains, noises, flips, gainDB float64
	for i := range n {
		d := c.draw(generator(i))
		if d.factor < 0 {
			flips++
		}
		if db := 20 * math.Log10(math.Abs(d.factor)); db != 0 {
			gains++
			gainDB += db
			if db < -12.0001 || db > 4.0001 {
				t.Fatalf("row %d: a gain of %g dB", i, db)
			}
		}
		if d.noisy {
			noises++
		}
		if db := 10 * math.Log10(d.snr); db < 9.9999 || db > 30.0001 {
			t.Fatalf("row %d: a ratio of %g dB", i, db)
		}
	}
	for _, s := range []struct {
		name     string
		count, p float64
	}{{"gain", gains, 0.3}, {"noise", noises, 0.2}, {"polarity", flips, 0.7}} {
		if bound := 5 * math.Sqrt(s.p*(1-s.p)/n); math.Abs(s.count/n-s.p) > bound {
			t.Errorf("%s: a share of %g, want %g +- %g", s.name, s.count/n, s.p, bound)
		}
	}
	if mean, bound := gainDB/gains, 5*16/math.Sqrt(12*gains); math.Abs(mean+4) > bound {
		t.Errorf("the mean gain is %g dB, want -4 +- %g", mean, bound)
	}
}

// TestEffectsAreIndependent switches each effect off. The draws of the others must not change.
func TestEffectsAreIndependent(t *testing.T) {
	all := certain()
	off := func(change func(*config)) config {
		c := all
		change(&c)
		return c
	}
	quiet := off(func(c *config) { c.GainProbability = 0 })
	clean := off(func(c *config) { c.NoiseProbability = 0 })
	upright := off(func(c *config) { c.PolarityProbability = 0 })
	for i := range 100 {
		want := all.draw(generator(i))
		if d := quiet.draw(generator(i)); d.snr != want.snr || d.noisy != want.noisy ||
			math.Signbit(d.factor) != math.Signbit(want.factor) {
			t.Errorf("row %d: without gain %+v, with it %+v", i, d, want)
		}
		if d := clean.draw(generator(i)); d.factor != want.factor {
			t.Errorf("row %d: without noise %+v, with it %+v", i, d, want)
		}
		if d := upright.draw(generator(i)); d.snr != want.snr || d.factor != -want.factor {
			t.Errorf("row %d: without polarity %+v, with it %+v", i, d, want)
		}
	}
	// The noise too: without gain, the row is the same except for its level.
	want, got := tone(3000), tone(3000)
	all.apply(want, generator(5))
	quiet.apply(got, generator(5))
	gain := math.Abs(all.draw(generator(5)).factor)
	for i := range want {
		if math.Abs(float64(want[i])-gain*float64(got[i])) > 1e-6 {
			t.Fatalf("sample %d is %g with a gain of %g, and %g without", i, want[i], gain, got[i])
		}
	}
}

func TestApplyLeavesAlone(t *testing.T) {
	odd := []float32{0, float32(math.Copysign(0, -1)), 1e-45, -3e38, 0.1}
	for name, c := range map[string]config{
		"probability 0": {GainDBMin: 3, GainDBMax: 6, SNRDBMin: 10, SNRDBMax: 20},
		"a gain of 0":   {GainProbability: 1},
	} {
		for _, r := range []*rand.Rand{generator(1), rand.New(zeros{})} {
			got := slices.Clone(odd)
			if err := c.apply(got, r); err != nil || !sameBits(got, odd) {
				t.Errorf("%s: %v became %v (%v)", name, odd, got, err)
			}
		}
	}
	silent := make([]float32, 100)
	c := certain()
	c.PolarityProbability = 0
	if err := c.apply(silent, generator(1)); err != nil || !sameBits(silent, make([]float32, 100)) {
		t.Errorf("silence became %v (%v)", silent, err)
	}
	if err := c.apply(nil, generator(1)); err != nil {
		t.Errorf("no samples: %v", err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		clip := []float32{1, float32(bad), 2}
		if err := c.apply(clip, generator(1)); err != errNotFinite || clip[0] != 1 || clip[2] != 2 {
			t.Errorf("a sample of %v: %v, %v", bad, clip, err)
		}
	}
}

// zeros is a source of zeros, from which Float64 and NormFloat64 return 0.
type zeros struct{}

func (zeros) Uint64() uint64 { return 0 }

func TestNoiseWithoutPower(t *testing.T) {
	c := config{NoiseProbability: 1, SNRDBMin: 10, SNRDBMax: 20}
	clip := []float32{0.5}
	if err := c.apply(clip, rand.New(zeros{})); err != nil || clip[0] != 0.5 {
		t.Errorf("0.5 became %v (%v)", clip[0], err)
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// BenchmarkApply reports seconds of audio per second on one core.
func BenchmarkApply(b *testing.B) {
	const rate, seconds = 22050, 5
	clip, work, r := tone(seconds*rate), make([]float32, seconds*rate), generator(1)
	for _, c := range []struct {
		name   string
		config config
	}{
		{"nothing", config{}},
		{"gain", config{GainProbability: 1, GainDBMin: 1, GainDBMax: 6}},
		{"noise", config{NoiseProbability: 1, SNRDBMin: 10, SNRDBMax: 40}},
		{"all", certain()},
		{"defaults", defaults()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				copy(work, clip)
				if err := c.config.apply(work, r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(seconds*float64(b.N)/b.Elapsed().Seconds(), "audio_s/s")
		})
	}
}
