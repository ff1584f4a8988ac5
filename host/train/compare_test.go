package train

import (
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// TestPieces: the differences of pieces add up to those of whole gradients, in f32 and bf16.
func TestPieces(t *testing.T) {
	b := open(t, pico)
	for _, bf16 := range []map[string]manifest.DType{nil, {b.Manifest.Parameters[1].Name: manifest.BF16}} {
		arena := ortgraphs.NewArena(b.Manifest.Parameters, ortgraphs.Policy{Gradients: bf16})
		random := rand.New(rand.NewPCG(1, 2))
		x, y := noise(random, arena.Bytes(ortgraphs.Gradients)), noise(random, arena.Bytes(ortgraphs.Gradients))
		list := pieces(arena, len(b.Manifest.Parameters), 64)
		var found []difference
		for _, p := range list {
			if p.from/64 != (p.to-1)/64 {
				t.Fatalf("%+v crosses a multiple of 64", p)
			}
			found = append(found, betweenBytes(x[p.from:p.to], y[p.from:p.to], p.dtype))
		}
		got := largest(byParameter(found, list, len(b.Manifest.Parameters)), 1e-6)
		var xs, ys [][]float32
		for i := range b.Manifest.Parameters {
			if at, ok := arena.Parameter(ortgraphs.Gradients, i); ok {
				xs = append(xs, numbers(x[at.Offset:at.Offset+at.Bytes()], at.DType))
				ys = append(ys, numbers(y[at.Offset:at.Offset+at.Bytes()], at.DType))
			}
		}
		if want := distance(xs, ys); !(got > want*(1-1e-9) && got < want*(1+1e-9)) {
			t.Errorf("%v: %g, want %g", bf16, got, want)
		}
	}
}

// noise returns so many bytes that are numbers between 0 and 1 as f32, and as bf16.
func noise(random *rand.Rand, n int) []byte {
	data := make([]byte, n)
	for i, v := 0, ort.View[uint16](data); i < len(v); i++ {
		v[i] = kernels.BF16(random.Float32())
	}
	return data
}

// BenchmarkBetween compares gradients of 16 million values on one core.
func BenchmarkBetween(b *testing.B) {
	x := noise(rand.New(rand.NewPCG(1, 2)), 64<<20)
	y := append([]byte{}, x...)
	b.SetBytes(int64(len(x)))
	for b.Loop() {
		betweenBytes(x, y, manifest.F32)
	}
}
