package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/record"
)

// series are steps whose times have a mean of 100 ms, a standard deviation of 20, and an autocorrelation that falls by
// phi with each step. The share noise of the variance is without correlation.
func series(r *rand.Rand, n int, mean, phi, noise float64) []record.Piece {
	pieces := make([]record.Piece, n)
	x := r.NormFloat64()
	for i := range pieces {
		x = phi*x + math.Sqrt(1-phi*phi)*r.NormFloat64()
		ms := mean * (1 + 0.2*(math.Sqrt(1-noise)*x+math.Sqrt(noise)*r.NormFloat64()))
		pieces[i] = record.Piece{Last: int64(i + 1), Steps: 1, Timed: 1, TimedMs: ms, Frames: 800}
	}
	return pieces
}

func stepsOf(p *record.Piece) float64  { return p.Timed }
func framesOf(p *record.Piece) float64 { return p.Frames }

// TestCoverage: 95 % of the intervals have the true speed-up, also where steps that follow each other are alike.
func TestCoverage(t *testing.T) {
	const trials, speedup = 1000, 1.25
	for _, c := range []struct{ phi, noise float64 }{{0, 0}, {0.5, 0}, {0.9, 0}, {0.97, 0.8}} {
		phi := c.phi
		for _, n := range []int{200, 1000, 5000} {
			r := rand.New(rand.NewPCG(1, uint64(n)))
			hit, plain, width := 0, 0, 0.0
			count := trials
			if n > 1000 {
				count = trials / 4
			}
			for range count {
				base := rateOf(series(r, n, 100, phi, c.noise), stepsOf)
				run := rateOf(series(r, n, 100/speedup, phi, c.noise), stepsOf)
				i := run.over(base)
				if *i.Low <= speedup && speedup <= *i.High {
					hit++
				}
				width += (*i.High - *i.Low) / float64(count)
				by := math.Exp(normal975 * 0.2 * math.Sqrt(2/float64(n))) // as if steps were independent
				if i.Value/by <= speedup && speedup <= i.Value*by {
					plain++
				}
			}
			share, naive := float64(hit)/float64(count), float64(plain)/float64(count)
			t.Logf("correlation %.2f, %d steps: %.1f %% of the intervals, of %.3f on average; %.1f %% of those "+
				"that take "+
				"steps for independent", phi, n, 100*share, width, 100*naive)
			least := 0.93
			if phi == 0.97 && n == 200 { // a drift as long as a third of the run
				least = 0.78
			}
			if share < least || share > 0.985 {
				t.Errorf("correlation %.1f, %d steps: %.1f %% of the intervals have the true value", phi, n, 100*share)
			}
		}
	}
}

// TestRates: by hand. 20 steps of 40 ms and 20 of 60, in turn: 20 steps a second; blocks of two have no variance.
func TestRates(t *testing.T) {
	var pieces []record.Piece
	for i := range 40 {
		ms := 40.0
		if i%2 == 1 {
			ms = 60
		}
		pieces = append(pieces, record.Piece{Timed: 1, TimedMs: ms, Frames: 10 * ms})
	}
	pieces = append([]record.Piece{{Steps: 1, Ms: 5000}}, pieces...) // the first step is not timed
	r := rateOf(pieces, stepsOf)
	if math.Abs(r.value-0.02) > 1e-15 || r.variance > 1e-20 || r.freedom != 19 {
		t.Errorf("%+v", r)
	}
	if f := rateOf(pieces, framesOf); math.Abs(f.value-10) > 1e-12 || f.variance > 1e-20 {
		t.Errorf("frames: %+v", f)
	}
	i := r.interval(60_000)
	if math.Abs(i.Value-1200) > 1e-9 || math.Abs(*i.Low-1200) > 1e-5 {
		t.Errorf("%+v", i)
	}
	if short := rateOf(pieces[:20], stepsOf); short.value == 0 || short.freedom != 0 || short.interval(1).Low != nil {
		t.Errorf("a short run: %+v", short)
	}
	if none := rateOf(nil, stepsOf); none.value != 0 || r.over(none) != nil || none.over(r) != nil {
		t.Errorf("no steps: %+v", none)
	}
}

// TestBlocks: by hand.
func TestBlocks(t *testing.T) {
	if got := blockMeans([]float64{99, 1, 3, 5, 7}, 2); got[0] != 2 || got[1] != 6 {
		t.Errorf("%v", got)
	}
	// mean 2.5, squares 2.25+0.25+0.25+2.25 = 5, products 0.75-0.25+0.75 = 1.25
	if v, r := momentsOf([]float64{1, 2, 3, 4}); v != 5.0/3 || r != 0.25 {
		t.Errorf("%g, %g", v, r)
	}
	// two rates of variances 0.01 and 0.03 with 9 and 19 degrees of freedom:
	// 0.04² / (0.01²/9 + 0.03²/19) = 0.0016 / 5.848e-5 = 27.36, of which the quantile is 2.0505
	i := rate{3, 0.01, 9}.over(rate{2, 0.03, 19})
	if want := 1.5 * math.Exp(2.0505*0.2); math.Abs(*i.High-want) > 1e-3 || i.Value != 1.5 {
		t.Errorf("%g to %g, want up to %g", *i.Low, *i.High, want)
	}
}

func TestStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{9: 2.2622, 19: 2.0930, 30: 2.0423, 63: 1.9983, 1e6: 1.9600} {
		if got := student(freedom); math.Abs(got/want-1) > 2e-3 {
			t.Errorf("%g degrees of freedom: %s, want %g", freedom, fmt.Sprintf("%.4f", got), want)
		}
	}
}
