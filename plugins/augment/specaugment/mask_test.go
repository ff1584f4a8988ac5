package specaugment

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

const (
	bands = 80
	mask  = -2.5
)

// generator returns the generator of a row whose key holds n, as stage.Batch creates it.
func generator(n int) *rand.Rand {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(n))
	return rand.New(rand.NewChaCha8(seed))
}

// apply draws the masks of a row and applies them.
func (c config) apply(mel []float32, bands int, value float32, r *rand.Rand) {
	d := c.draw(len(mel)/bands, bands, r)
	d.warp.apply(mel, bands)
	apply(mel, bands, value, d.freqMasks, d.timeMasks)
}

// ones returns a spectrogram without an element that could be mistaken for a masked one.
func ones(frames, bands int) []float32 { return slices.Repeat([]float32{1}, frames*bands) }

// masked returns the range of the only mask in a sequence; end equals first for a mask of width 0.
func masked(t *testing.T, elements []float32) (first, end int) {
	t.Helper()
	first = slices.Index(elements, mask)
	if first < 0 {
		return 0, 0
	}
	end = first
	for end < len(elements) && elements[end] == mask {
		end++
	}
	if slices.Contains(elements[end:], mask) {
		t.Fatalf("more than one mask in %v", elements)
	}
	return first, end
}

// uniformity sums the chi-square statistics of uniform distributions over integers.
type uniformity struct{ chi2, freedom float64 }

func (u *uniformity) add(counts []int) {
	total := 0
	for _, n := range counts {
		total += n
	}
	expected := float64(total) / float64(len(counts))
	for _, n := range counts {
		u.chi2 += (float64(n) - expected) * (float64(n) - expected) / expected
	}
	u.freedom += float64(len(counts) - 1)
}

// check fails when the statistic is more than 5 standard deviations above its mean: chi-square has mean k and variance
// 2k.
func (u *uniformity) check(t *testing.T, what string) {
	t.Helper()
	if bound := u.freedom + 5*math.Sqrt(2*u.freedom); !(u.chi2 <= bound) {
		t.Errorf("%s: chi-square %.1f with %g degrees of freedom, at most %.1f wanted", what, u.chi2, u.freedom, bound)
	}
	t.Logf("%s: chi-square %.1f, %g degrees of freedom", what, u.chi2, u.freedom)
}

// TestMaskStatistics measures the masks in the spectrograms of 10,000 rows: widths are uniform in 0..widest, and for
// each width the positions are uniform in 0..size-width.
func TestMaskStatistics(t *testing.T) {
	const count = 10_000
	for _, c := range []struct {
		name         string
		config       config
		frames       int
		size, widest int
		of           func(mel []float32) []float32 // the elements along the masked axis
	}{
		{"frequency", config{Probability: 1, FreqMasks: 1, FreqMaskWidth: 15}, 2, bands, 15,
			func(mel []float32) []float32 { return mel[bands:] }},
		{"all bands", config{Probability: 1, FreqMasks: 1, FreqMaskWidth: bands}, 1, bands, bands,
			func(mel []float32) []float32 { return mel }},
		{"time", config{Probability: 1, TimeMasks: 1, TimeMaskWidth: 12, TimeMaskShare: 1}, 60, 60, 12, column},
		{
			"time, by share", config{Probability: 1, TimeMasks: 1, TimeMaskWidth: 70, TimeMaskShare: 0.25}, 60, 60, 15,
			column,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			widths := make([]int, c.widest+1)
			positions := make([][]int, c.widest+1)
			for w := range positions {
				positions[w] = make([]int, c.size-w+1)
			}
			for n := range count {
				mel := ones(c.frames, bands)
				c.config.apply(mel, bands, mask, generator(n))
				first, end := masked(t, c.of(mel))
				if end-first > c.widest {
					t.Fatalf("row %d: a mask of %d, wider than %d", n, end-first, c.widest)
				}
				widths[end-first]++
				if end > first {
					positions[end-first][first]++
				}
			}
			var w, p uniformity
			w.add(widths)
			w.check(t, "widths")
			for width, counts := range positions {
				if width > 0 {
					p.add(counts)
				}
			}
			p.check(t, "positions")
		})
	}
}

// column returns band 3 of each frame.
func column(mel []float32) []float32 {
	var out []float32
	for at := 3; at < len(mel); at += bands {
		out = append(out, mel[at])
	}
	return out
}

// TestProbability checks the share of masked rows to within 5 standard errors.
func TestProbability(t *testing.T) {
	const count, p = 10_000, 0.3
	c := config{Probability: p, FreqMasks: 20, FreqMaskWidth: bands}
	hit := 0.0
	for n := range count {
		mel := ones(1, bands)
		if c.apply(mel, bands, mask, generator(n)); slices.Contains(mel, mask) {
			hit++
		}
	}
	if bound := 5 * math.Sqrt(p*(1-p)/count); math.Abs(hit/count-p) > bound {
		t.Errorf("%g of the rows are masked, want %g +- %g", hit/count, p, bound)
	}

	c.Probability = 0
	mel := ones(1, bands)
	if c.apply(mel, bands, mask, rand.New(&sequence{0, math.MaxUint64})); slices.Contains(mel, mask) {
		t.Error("probability 0 masked a row whose draw was 0")
	}
}

// TestKindsAreIndependent changes the masks of one kind and expects those of the other kind to stay the same.
func TestKindsAreIndependent(t *testing.T) {
	const frames = 100
	both := defaults()
	apply := func(n int, change func(*config)) []float32 {
		c := both
		change(&c)
		mel := ones(frames, bands)
		c.apply(mel, bands, mask, generator(n))
		return mel
	}
	for n := range 50 {
		want := apply(n, func(*config) {})
		freq := apply(n, func(c *config) { c.TimeMasks = 0 })
		time := apply(n, func(c *config) { c.FreqMasks = 0 })
		likely := apply(n, func(c *config) { c.Probability = 0.999 }) // the first draws of these rows are smaller
		for i := range want {
			if (want[i] == mask) != (freq[i] == mask || time[i] == mask) {
				t.Fatalf("row %d: frame %d, band %d is not masked as by each kind alone", n, i/bands, i%bands)
			}
		}
		if !slices.Equal(likely, want) {
			t.Fatalf("row %d: another probability moved the masks", n)
		}
	}
}

// TestMasksAreWhole checks that a frequency mask covers exactly its bands in all frames, and a time mask exactly its
// frames in all bands.
func TestMasksAreWhole(t *testing.T) {
	const frames = 50
	for n := range 200 {
		mel := ones(frames, bands)
		config{Probability: 1, FreqMasks: 1, FreqMaskWidth: 20}.apply(mel, bands, mask, generator(n))
		for at := bands; at < len(mel); at += bands {
			if !slices.Equal(mel[at:at+bands], mel[:bands]) {
				t.Fatalf("row %d: frame %d is not masked as frame 0", n, at/bands)
			}
		}
		mel = ones(frames, bands)
		config{Probability: 1, TimeMasks: 1, TimeMaskWidth: 20, TimeMaskShare: 1}.apply(mel, bands, mask, generator(n))
		for at := 0; at < len(mel); at += bands {
			if slices.Contains(mel[at:at+bands], mask) == slices.Contains(mel[at:at+bands], 1) {
				t.Fatalf("row %d: frame %d is masked in part", n, at/bands)
			}
		}
	}
}

func TestBelow(t *testing.T) {
	for _, n := range []int{1, 2, 3, 80, 1 << 20, 1<<20 + 1} {
		if got := below(rand.New(&sequence{math.MaxUint64}), n); got != n-1 {
			t.Errorf("the largest draw below %d is %d", n, got)
		}
	}
}

// sequence is a source that returns its numbers and then repeats the last one. Float64 is 0 for 0, and the largest
// value below 1 for math.MaxUint64.
type sequence []uint64

func (s *sequence) Uint64() uint64 {
	n := (*s)[0]
	if len(*s) > 1 {
		*s = (*s)[1:]
	}
	return n
}

// BenchmarkApply reports seconds of spectrogram per second on one core.
func BenchmarkApply(b *testing.B) {
	const frames, framesPerSecond = 431, 22050.0 / 256
	mel, r, c := ones(frames, bands), generator(1), defaults()
	b.ReportAllocs()
	for b.Loop() {
		c.apply(mel, bands, mask, r)
	}
	b.ReportMetric(frames/framesPerSecond*float64(b.N)/b.Elapsed().Seconds(), "audio_s/s")
}
