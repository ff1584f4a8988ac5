package fused

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
	"github.com/xtts-host/xtts-host/ortgraphs/onnxpb"
)

// batch is what a proof measures of a result of 128 elements in f32, and of noise and differences of that size. shared
// says that all elements have the same noise, and the same difference.
func batch(random *rand.Rand, noise, difference, scale float64, shared bool) map[int]*Verdict {
	var b block
	e, d := random.NormFloat64(), random.NormFloat64()
	for range 128 {
		x := random.NormFloat64()
		if !shared {
			e, d = random.NormFloat64()/x, random.NormFloat64()/x
		}
		move, apart := noise*e*x, (difference*d+scale)*x
		b.squares += apart * apart
		b.noiseSquares += move * move
		b.norm += x * x
		b.along += apart * x
		b.noiseAlong += move * x
		b.noiseAlongSquares += move * x * move * x
		b.largest, b.noiseLargest = max(b.largest, math.Abs(apart)), max(b.noiseLargest, math.Abs(move))
		b.normLargest = max(b.normLargest, math.Abs(x))
	}
	v := &Verdict{}
	t := &fuse.Tensor{Name: "result", Type: onnxpb.TensorProto_FLOAT, Shape: []int{128}}
	v.add(result{measured: &measured{tensor: t, blocks: 1, terms: 16, products: 1, noisy: true}, parts: []block{b}})
	return map[int]*Verdict{0: v}
}

// TestNoiseOfOneDraw: no kernel is refused because noise that is drawn once is small by chance: that along the result,
// where most of it cancels, or all of it, where one number moves all elements. Wrong ones are found.
func TestNoiseOfOneDraw(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for _, shared := range []bool{false, true} {
		for _, c := range []struct {
			noise, difference, scale float64
			wrong                    bool
		}{{0.2, 0.1, 0, false}, {0.01, 0.005, 0, false}, {0.01, 0.005, 0.1, true}, {0.0005, 0.0002, 0.01, true}} {
			found := 0
			const trials = 300
			for range trials {
				var trial Trial
				for trial.Add(batch(random, c.noise, c.difference, c.scale, shared)) {
				}
				found += len(trial.Faults())
			}
			if want := map[bool]int{true: trials}[c.wrong]; found != want {
				t.Errorf("noise %g, difference %g and %g of the result, shared %v: %d of %d are found, want %d",
					c.noise, c.difference, c.scale, shared, found, trials, want)
			}
		}
	}
}

// TestTrusted: a suspicion against a trusted region needs no more batches, and is no fault.
func TestTrusted(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		random := rand.New(rand.NewPCG(1, 1))
		trial, batches := Trial{Trusted: func(int) bool { return trusted }}, 1
		for trial.Add(batch(random, 0.01, 0.005, 0.1, false)) {
			batches++
		}
		if faults := len(trial.Faults()); (faults == 0) != trusted || (batches == minRounds) != trusted {
			t.Errorf("trusted %v: %d faults on %d batches", trusted, faults, batches)
		}
	}
}
