package train

import (
	"math"
	"math/rand/v2"
	"testing"

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

// TestNarrow: Go rounds to bf16 as the definition says.
func TestNarrow(t *testing.T) {
	for _, c := range []struct {
		from uint32
		want uint16
	}{
		{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f808001, 0x3f81}, {0x3f818000, 0x3f82}, {0x3f807fff, 0x3f80},
		{0xbf818000, 0xbf82}, {0, 0}, {0x80000000, 0x8000}, {0x8000, 0}, {0x8001, 1}, {0x18000, 2},
		{0x7f7fffff, 0x7f80}, {0x7f7f7fff, 0x7f7f}, {0xff800000, 0xff80},
	} {
		if got := ToBF16(math.Float32frombits(c.from)); got != c.want {
			t.Errorf("%#08x is %#04x, want %#04x", c.from, got, c.want)
		}
	}
	for _, nan := range []uint32{0x7fc00000, 0x7f800001, 0xffffffff, 0x7fffffff} {
		if got := ToBF16(math.Float32frombits(nan)); got&0x7f80 != 0x7f80 || got&0x7f == 0 {
			t.Errorf("NaN %#08x is %#04x", nan, got)
		}
	}
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
				if want := ToBF16(weights[i]); got != want {
					t.Fatalf("%s: %#08x is %#04x in the graph and %#04x in Go", name, math.Float32bits(weights[i]), got,
						want)
				}
			}
		}
	}
}
