package vorbis

import (
	"errors"
	"strings"
	"testing"
)

// writer writes numbers, the lowest bit first.
type writer struct {
	b []byte
	n int
}

func (w *writer) put(v, bits int) *writer {
	for i := range bits {
		if w.n%8 == 0 {
			w.b = append(w.b, 0)
		}
		w.b[w.n/8] |= byte(v>>i&1) << (w.n % 8)
		w.n++
	}
	return w
}

// codebook begins a setup header with one codebook of plain lengths.
func codebook(dimensions, entries int, lengths ...int) *writer {
	w := new(writer).put(0, 8).put(0x564342, 24).put(dimensions, 16).put(entries, 24).put(0, 1).put(0, 1)
	for _, n := range lengths {
		w.put(n-1, 5)
	}
	return w
}

// TestCheckSetup: the decoder never sees tables that are too large, or that have no end.
func TestCheckSetup(t *testing.T) {
	floor := func(kind int) *writer {
		return codebook(1, 2, 1, 1).put(0, 4).put(0, 6).put(0, 16).put(0, 6).put(kind, 16)
	}
	for name, c := range map[string]struct {
		w    *writer
		want string
	}{
		"good":             {floor(1).put(0, 5).put(0, 2).put(0, 4), ""},
		"no mark":          {new(writer).put(0, 64), "codebook 0: damaged: no mark"},
		"no dimensions":    {codebook(0, 2, 1, 1), "2 entries of 0 dimensions"},
		"one entry":        {codebook(1, 1, 1), "1 entries of 1 dimensions"},
		"many entries":     {codebook(1, maxEntries+1), "131073 entries"},
		"many values":      {codebook(60_000, 100_000), "100000 entries of 60000 dimensions"},
		"a tree with room": {codebook(1, 3, 2, 2, 2).put(0, 4), "no tree"},
		"too many words":   {codebook(1, 3, 1, 1, 1).put(0, 4), "no tree"},
		"lookup 3":         {codebook(1, 2, 1, 1).put(3, 4), "lookup of type 3"},
		"values missing":   {codebook(1, 2, 1, 1).put(1, 4).put(0, 64), "codebook 0: damaged: it ends early"},
		"words missing":    {codebook(1, 1000, 1), "codebook 0: damaged: it ends early"},
		"floor 0":          {floor(0), "floor of type 0"},
		"floor 2":          {floor(2), "floor of type 2"},
		"floor missing":    {floor(1), "it ends early"},
	} {
		err := checkSetup(c.w.b)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if floor0 := name == "floor 0"; floor0 && !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v is no ErrUnsupported", name, err)
		}
	}
}

func TestRoot(t *testing.T) {
	for _, c := range [][3]int{{625, 4, 5}, {624, 4, 4}, {6561, 8, 3}, {2, 16, 1}, {81, 2, 9}} {
		if got := root(c[0], c[1]); got != c[2] {
			t.Errorf("root %d of %d is %d, want %d", c[1], c[0], got, c[2])
		}
	}
}
