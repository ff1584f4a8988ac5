package cudac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/ortgraphs/fuse"
)

// tile is the program of a region that reads along one axis and writes along another. A block transposes a square in
// shared memory, so neighbouring threads read and write neighbouring elements.
type tile struct {
	shape
	read, write int // axes
}

const (
	tileSize = 32
	tileRows = blockThreads / tileSize // of a block at a time
	// minTile is the number of elements of an axis below which a square is not worth its barrier.
	minTile = 16
)

// newTile returns false if the region reads and writes along the same axis, or does more than copy each place.
func newTile(r *fuse.Region, l *fuse.Loops, s shape) (*tile, bool) {
	if s.reduces || len(l.Columns) > 0 || len(l.Sizes) < 2 {
		return nil, false
	}
	t := &tile{shape: s, read: -1, write: -1}
	p := newPlaces(s.sizes)
	for _, o := range r.Out {
		axis, ok := innermostAxis(flat(p.index(l.Of(o)), o.Shape))
		if !ok || o.Elements() != s.R*s.C || t.write >= 0 && axis != t.write {
			return nil, false
		}
		t.write = axis
	}
	bytes := map[int]int{}
	inside := map[*fuse.Tensor]bool{}
	for _, n := range r.Nodes {
		inside[n.Out[0]] = true
	}
	for _, n := range r.Nodes {
		if n.Kind != fuse.Elementwise || n.Inline {
			return nil, false
		}
		for _, o := range n.In {
			if inside[o.Tensor] || o.Tensor.Elements()*4 < s.R*s.C {
				continue
			}
			if axis, ok := innermostAxis(p.element(p.index(l.Of(n.Out[0])), o)); ok {
				bytes[axis] += o.Tensor.Bytes()
			}
		}
	}
	for _, axis := range slices.Sorted(maps.Keys(bytes)) {
		if t.read < 0 || bytes[axis] > bytes[t.read] {
			t.read = axis
		}
	}
	if t.read < 0 || t.read == t.write || bytes[t.write] > bytes[t.read] || s.sizes[t.read] < minTile ||
		s.sizes[t.write] < minTile {
		return nil, false
	}
	return t, true
}

// innermostAxis returns the axis along which elements are consecutive in memory.
func innermostAxis(at affine) (int, bool) {
	for name, factor := range at.factors {
		var axis int
		if n, _ := fmt.Sscanf(name, "a%d", &axis); n == 1 && factor == 1 {
			return axis, true
		}
	}
	return 0, false
}

func (t *tile) generate(r *fuse.Region, l *fuse.Loops) (*Kernel, error) {
	s := t.shape
	s.cols, s.rows, s.V = []int{t.read}, nil, 1
	var others []int
	for a := range s.sizes {
		if a != t.read {
			s.rows = append(s.rows, a)
			if a != t.write {
				others = append(others, a)
			}
		}
	}
	s.R, s.C = s.places(s.rows), s.sizes[t.read]
	b := emptyBody(r, l, s)
	b.square = true
	if err := b.fill(); err != nil {
		return nil, err
	}
	across, down := ceil(s.sizes[t.read], tileSize), ceil(s.sizes[t.write], tileSize)
	w := &writer{}
	w.begin(b, blockThreads, 0)
	w.line("__shared__ float square[%d][%d][%d];", len(b.squares), tileSize, tileSize+1)
	w.line("const int x = threadIdx.x %% %d, y = threadIdx.x / %d;", tileSize, tileSize)
	w.line("const int left = blockIdx.x %% %d * %d, top = blockIdx.x / %d %% %d * %d, rest = blockIdx.x / %d;", across,
		tileSize, across, down, tileSize, across*down)
	w.axes(s, others, "rest")
	turn := func(first, second int, body func()) {
		w.line("for (int i = y; i < %d; i += %d) {", tileSize, tileRows)
		w.line("const int %s = left + %s, %s = top + %s;", axisName(t.read), []string{"x", "i"}[first],
			axisName(t.write), []string{"x", "i"}[second])
		w.line("if (%s < %d && %s < %d) {", axisName(t.read), s.sizes[t.read], axisName(t.write), s.sizes[t.write])
		body()
		w.line("}")
		w.line("}")
	}
	turn(0, 1, func() {
		w.divisions(b, false)
		w.divisions(b, true)
		for _, statement := range slices.Concat(b.phases[0].row, b.phases[0].elements) {
			w.line("%s", statement)
		}
		for i, q := range b.squares {
			w.line("square[%d][i][x] = %s;", i, q.code)
		}
	})
	w.line("__syncthreads();")
	turn(1, 0, func() {
		for i, q := range b.squares {
			w.line("%s = square[%d][x][i];", q.element, i)
		}
	})
	w.line("}")
	return b.kernel(w, [2]int{across * down * s.places(others), 1}, blockThreads), nil
}

// squareStore writes a value of a square to memory.
type squareStore struct{ code, element string }

// storeSquare leaves a result for the transposed store.
func (b *body) storeSquare(condition []string, pointer string, at affine, t *fuse.Tensor, code string) error {
	if len(condition) > 1 || !isFloat(t.Type) {
		return unsupported("%s is not written as a square: %s", t.Name, strings.Join(condition, ", "))
	}
	b.squares = append(b.squares, squareStore{code, fmt.Sprintf("%s[%s]", pointer, at)})
	return nil
}
