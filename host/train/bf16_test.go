package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// edges are numbers at which rounding to bf16 decides.
var edges = []uint32{
	// zeros, the smallest, halfway and next to it
	0, 0x80000000, 1, 0x80000001, 0x7fff, 0x8000, 0x8001, 0x18000, 0x17fff,
	// 1 and halfway to its neighbours
	0x3f800000, 0x3f808000, 0x3f808001, 0x3f818000, 0x3f807fff, 0xbf808000, 0xbf818000,
	0x7f7fffff, 0x7f7f8000, 0x7f7f7fff, 0xff7fffff, 0x7f800000, 0xff800000, // the largest, which rounds to infinity
}

// drawn are the edges, and numbers of all sizes.
func drawn(n int) []float32 {
	random := rand.New(rand.NewPCG(8, 9))
	x := make([]float32, n)
	for i := range x {
		if x[i] = math.Float32frombits(random.Uint32()); i < len(edges) {
			x[i] = math.Float32frombits(edges[i])
		} else if x[i] != x[i] {
			x[i] = float32(random.NormFloat64())
		}
	}
	return x
}

// TestGraphsRoundAsGoDoes: an update's copies have the bits that narrow gives its weights, so that a resumed run begins
// with those of the run before.
func TestGraphsRoundAsGoDoes(t *testing.T) {
	for _, gradients := range []bool{false, true} {
		for _, name := range []string{"adamw", "sgd", "lion"} {
			r := rules[name]
			m := newMemory(Device{})
			defer m.Close()
			f := forms{gradients, true}
			v := newProof(&m, r, f)
			s := newScalars(&m, r, manifest.Optimizer{Betas: [2]float64{0.9, 0.99}, Eps: 1e-8}, 1, 0)
			session := graph{name, f}.load(&m, 1, false)
			update := s.bind(&m, session, r, rates{s.lr.tensor, s.constant(&m, 0)}, v, f, ortgraphs.Range{End: proofs})
			if m.err != nil {
				t.Fatal(m.err)
			}
			weights := drawn(proofs)
			v.weights.set(weights)
			*s.finite.value = 0 // the weights stay
			if err := m.run(update); err != nil {
				t.Fatal(err)
			}
			for i, got := range ort.View[uint16](v.copies.host[:2*proofs]) {
				if want := kernels.BF16(weights[i]); got != want {
					t.Fatalf("%s: %#08x is %#04x in the graph and %#04x in Go", name, math.Float32bits(weights[i]), got,
						want)
				}
			}
		}
	}
}
