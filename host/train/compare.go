package train

import (
	"math"

	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// difference is the difference of two vectors: a sum of squares each.
type difference struct {
	squares float64 // of the differences
	norm    float64 // of the second vector
	blind   int     // numbers of the second vector that are not finite
}

// proves reports whether the second vector shows what is wrong in the first: it is finite and not zero.
func (d *difference) proves() bool { return d.norm > 0 && d.blind == 0 }

func (d *difference) add(x, y float64) {
	if x != y && (x == x || y == y) { // synthetic numbers may give NaN in both
		d.squares += (x - y) * (x - y)
	}
	if y-y == 0 { // finite
		d.norm += y * y
	} else {
		d.blind++
	}
}

// between compares the numbers of two vectors.
func between(a, b []float32) (d difference) {
	const block = 4096
	for len(a) > 0 {
		n := min(block, len(a))
		squares, norm := 0.0, 0.0
		for i, x := range a[:n] {
			y := float64(b[i])
			squares += (float64(x) - y) * (float64(x) - y)
			norm += y * y
		}
		if squares-squares == 0 && norm-norm == 0 {
			d.squares += squares
			d.norm += norm
		} else { // some numbers are not finite
			for i, x := range a[:n] {
				d.add(float64(x), float64(b[i]))
			}
		}
		a, b = a[n:], b[n:]
	}
	return d
}

// betweenBytes compares two vectors of a type.
func betweenBytes(a, b []byte, t manifest.DType) (d difference) {
	if t != manifest.BF16 {
		return between(ort.View[float32](a), ort.View[float32](b))
	}
	y := ort.View[uint16](b)
	for i, x := range ort.View[uint16](a) {
		d.add(float64(math.Float32frombits(uint32(x)<<16)), float64(math.Float32frombits(uint32(y[i])<<16)))
	}
	return d
}

// largest returns the largest distance of two vectors, relative to the larger of their norm and a share of the norm of
// all.
func largest(list []difference, share float64) float64 {
	all, worst := 0.0, 0.0
	for _, d := range list {
		all += d.norm
	}
	for _, d := range list {
		if math.IsNaN(d.squares) || math.IsInf(d.squares, 0) {
			return math.Inf(1) // only one is a number
		}
		worst = max(worst, math.Sqrt(d.squares/max(d.norm, share*share*all, 1e-30)))
	}
	return worst
}

// distance returns the largest distance of two vectors of the lists, relative to the larger of their norm and a
// millionth of all.
func distance(a, b [][]float32) float64 {
	var list []difference
	for i := range a {
		list = append(list, between(a[i], b[i]))
	}
	return largest(list, 1e-6)
}

// pieceBytes is the size of the pieces of gradients that are compared in parallel. It divides the staging memory.
const pieceBytes = 1 << 20

// piece is a part of a parameter's gradient: bytes of the arena.
type piece struct {
	param    int
	from, to int
	dtype    manifest.DType
}

// pieces divides the gradients of so many parameters. No piece crosses a multiple of size.
func pieces(arena *ortgraphs.Arena, params, size int) (list []piece) {
	for i := range params {
		at, ok := arena.Parameter(ortgraphs.Gradients, i)
		if !ok {
			continue
		}
		end := at.Offset + at.Bytes()
		for from := at.Offset; from < end; {
			to := min(end, (from/size+1)*size)
			list = append(list, piece{i, from, to, at.DType})
			from = to
		}
	}
	return list
}

// compareGradients compares the gradients on the GPU with those of want, which has the layout of their arena. The
// result is by parameter.
func (t *trial) compareGradients(want []byte) ([]difference, error) {
	list := pieces(t.arena, len(t.params), pieceBytes)
	found := make([]difference, len(list))
	err := read(&t.memory, &t.grads.block, func(at int, data []byte) error {
		comparePieces(found, list, at, data, want)
		return nil
	})
	return byParameter(found, list, len(t.params)), err
}

// comparePieces compares, in parallel, the pieces that are in data, which begins at an offset of the arena, with those
// of want.
func comparePieces(found []difference, list []piece, at int, data, want []byte) {
	all := allCores()
	for i, p := range list {
		if p.from >= at && p.to <= at+len(data) {
			all.Go(func() error {
				found[i] = betweenBytes(data[p.from-at:p.to-at], want[p.from:p.to], p.dtype)
				return nil
			})
		}
	}
	all.Wait()
}

// byParameter adds up the differences of pieces.
func byParameter(found []difference, list []piece, params int) []difference {
	sums := make([]difference, params)
	for i, p := range list {
		sums[p.param].squares += found[i].squares
		sums[p.param].norm += found[i].norm
		sums[p.param].blind += found[i].blind
	}
	return sums
}
