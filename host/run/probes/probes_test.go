package probes

import (
	"bytes"
	"image/png"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/host/base/rundir"
	"github.com/xtts-host/xtts-host/host/observe/event"
	"github.com/xtts-host/xtts-host/host/observe/picture"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestMeasure(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	var p event.Probe
	measure(&p, []float32{3, inf, -1, nan, 1, 1, -inf})
	if p.Mean != 1 || p.Min != -1 || p.Max != 3 || p.NotFinite != 3 || p.Norm != math.Sqrt(12) || p.Std != math.Sqrt2 {
		t.Errorf("%+v", p)
	}
	if len(p.Edges) != bins+1 || p.Edges[0] != -1 || p.Edges[bins] != 3 || p.Counts[0] != 1 || p.Counts[bins/2] != 2 ||
		p.Counts[bins-1] != 1 {
		t.Errorf("%v in %v", p.Counts, p.Edges)
	}
	p = event.Probe{}
	measure(&p, []float32{7, 7, nan})
	if !slices.Equal(p.Counts, []int{2}) || p.Edges[0] != 7 || p.Edges[1] <= 7 || p.Std != 0 {
		t.Errorf("%+v", p)
	}
	for _, none := range [][]float32{nil, {nan, inf}} {
		p = event.Probe{}
		measure(&p, none)
		if p.NotFinite != len(none) || !math.IsNaN(p.Mean) || len(p.Edges) != 0 || p.Norm != 0 {
			t.Errorf("%+v", p)
		}
	}
}

// TestHistogram: every value is in the bin of its edges.
func TestHistogram(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		values := make([]float32, 1+random.IntN(300))
		for i := range values {
			values[i] = float32(random.NormFloat64() * math.Pow(10, float64(random.IntN(60)-30)))
		}
		var p event.Probe
		measure(&p, values)
		for i, count := range p.Counts {
			want := 0
			for _, v := range values {
				v, last := float64(v), i == len(p.Counts)-1
				if v >= p.Edges[i] && (v < p.Edges[i+1] || last && v <= p.Edges[i+1]) {
					want++
				}
			}
			if count != want {
				t.Fatalf("bin %d has %d, want %d", i, count, want)
			}
		}
	}
}

func TestCut(t *testing.T) {
	a := array{[]int{2, 2, 3}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}
	for _, c := range []struct {
		limits []int
		want   []float32
	}{
		{[]int{2, 2, 3}, a.values}, {[]int{2, 1, 2}, []float32{0, 1, 6, 7}}, {[]int{1, 2, 1}, []float32{0, 3}},
		{[]int{2, 0, 3}, nil}, {[]int{2, 2, 0}, nil},
	} {
		if got := a.cut(c.limits); !slices.Equal(got.values, c.want) || !slices.Equal(got.shape, c.limits) {
			t.Errorf("%v: %v", c.limits, got)
		}
	}
	if got := a.row(1).cut([]int{2, 1}).values; !slices.Equal(got, []float32{6, 9}) {
		t.Errorf("row 1 has %v", got)
	}
	if got := (array{[]int{2}, []float32{5, 6}}).row(1).cut(nil).values; !slices.Equal(got, []float32{6}) {
		t.Errorf("a number has %v", got)
	}
}

// TestDraw: time goes from left to right, and the first columns are at the bottom.
func TestDraw(t *testing.T) {
	frames, fixed := manifest.Sym("T_mel"), manifest.Fixed(3)
	across := array{[]int{2, 3}, []float32{0, 0, 0, 0, 0, 9}} // the largest is in the last row and column
	up := array{[]int{3, 2}, []float32{0, 0, 0, 0, 0, 9}}
	for name, c := range map[string]struct {
		array
		spec          manifest.Shape
		width, height int
	}{
		"time first":     {across, manifest.Shape{frames, fixed}, 2, 3},
		"time last":      {up, manifest.Shape{fixed, frames}, 2, 3},
		"time twice":     {across, manifest.Shape{frames, frames}, 2, 3},
		"fixed":          {across, manifest.Shape{manifest.Fixed(2), fixed}, 2, 3},
		"a head of many": {array{[]int{1, 2, 3}, across.values}, manifest.Shape{fixed, frames, fixed}, 2, 3},
	} {
		data, err := draw(c.array, c.spec)
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		const left, bottom, cell = 80, 24, 4
		size := picture.Bounds().Size()
		if size.Y != bottom+cell*c.height {
			t.Errorf("%s: the picture has %v", name, size)
		}
		light := func(column, row int) uint32 {
			r, g, b, _ := picture.At(left+cell*column+1, cell*row+1).RGBA()
			return r + g + b
		}
		corner, others := light(c.width-1, 0), max(light(0, 0), light(0, c.height-1), light(c.width-1, c.height-1))
		if corner <= 2*others {
			t.Errorf("%s: the largest value is not at the right end of the top: %d, others %d", name, corner, others)
		}
	}
	for name, none := range map[string]array{
		"a number": {nil, []float32{1}}, "a row": {[]int{3}, make([]float32, 3)},
		"one row": {[]int{1, 3}, make([]float32, 3)}, "one column": {[]int{2, 3, 1}, make([]float32, 6)},
		"no rows": {[]int{0, 3}, nil},
	} {
		spec := make(manifest.Shape, len(none.shape))
		if data, err := draw(none, spec); data != nil || err != nil {
			t.Errorf("%s has a picture, %v", name, err)
		}
	}
}

// TestOnlyWhatIsSpokenCounts: neither empty rows nor what follows a row's length is in the figures, and the picture is
// that of the first row with content.
func TestOnlyWhatIsSpokenCounts(t *testing.T) {
	text, frames := manifest.Sym("T_text"), manifest.Sym("T_mel")
	rows, half := manifest.Sym(manifest.BatchSymbol), manifest.Sym(manifest.DerivedSymbol)
	dir := t.TempDir()
	p := &Prober{
		batch: 3, rows: []int{1, 2}, lengths: map[string]string{"T_text": "texts", "T_mel": "mels"},
		counts: func(input string) []int32 {
			return map[string][]int32{"texts": {3, 2, 1}, "mels": {4, 3, 9}}[input]
		},
	}
	p.Dir = dir
	p.Probes = []manifest.Probe{
		{Name: "attention", Shape: manifest.Shape{rows, frames, text}},
		{Name: "half", Shape: manifest.Shape{rows, half}},
		{Name: "bias", Shape: manifest.Shape{manifest.Fixed(2), manifest.Fixed(2)}},
		{Name: "number", Shape: manifest.Shape{}},
	}
	values := make([]float32, 3*4*3)
	for i := range values {
		values[i] = float32(math.Inf(1)) // what does not count
	}
	for frame := range 4 {
		if values[(2*4+frame)*3] = 7; frame < 3 {
			copy(values[(1*4+frame)*3:], []float32{1, 2})
		}
	}
	for _, c := range []struct {
		name             string
		array            array
		n                int
		mean             float64
		picture, written string
	}{
		{"attention", array{[]int{3, 4, 3}, values}, 6 + 4, 3.7, "probes/step-000007/attention.png", "attention.png"},
		{"half", array{[]int{3, 2}, []float32{9, 9, 1, 2, 3, 4}}, 4, 2.5, "", ""},
		{"bias", array{[]int{2, 2}, []float32{1, 2, 3, 6}}, 4, 3, "probes/step-000007/bias.png", "bias.png"},
		{"number", array{nil, []float32{5}}, 1, 5, "", ""},
	} {
		e := &event.Probed{Step: 7}
		err := p.probe(e, c.name, c.array)
		got, n := e.Tensors[0], 0
		for _, count := range got.Counts {
			n += count
		}
		if err != nil || got.NotFinite != 0 || n != c.n || math.Abs(got.Mean-c.mean) > 1e-9 ||
			got.Picture != c.picture || !slices.Equal(got.Shape, c.array.shape) {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
		if c.written == "" {
			continue
		}
		file, err := os.Open(filepath.Join(dir, rundir.ProbesFolder, "step-000007", c.written))
		if err != nil {
			t.Fatal(err)
		}
		picture, err := png.Decode(file)
		file.Close()
		if err != nil || c.name == "attention" && picture.Bounds().Dy() != 24+4*2 {
			t.Errorf("%s: the picture has %v, %v", c.name, picture.Bounds(), err)
		}
	}
	p.rows = nil
	e := &event.Probed{Step: 7}
	err := p.probe(e, "attention", array{[]int{3, 4, 3}, values})
	if got := e.Tensors[0]; err != nil || got.Picture != "" || len(got.Counts) > 0 {
		t.Errorf("a batch of empty rows has %+v, %v", got, err)
	}
}

// TestOtherShape: a graph that gives another shape than the bundle declares fails the probe, not the run.
func TestOtherShape(t *testing.T) {
	rows, frames := manifest.Sym(manifest.BatchSymbol), manifest.Sym("T_mel")
	p := &Prober{batch: 2, rows: []int{0, 1}, counts: func(string) []int32 { return nil }}
	p.Dir = t.TempDir()
	p.Probes = []manifest.Probe{
		{Name: "mel", Shape: manifest.Shape{rows, frames, manifest.Fixed(4)}},
		{Name: "bias", Shape: manifest.Shape{manifest.Fixed(2), manifest.Fixed(2)}}, {Name: "number"},
	}
	for _, c := range []struct {
		name   string
		shape  []int
		values int
		ok     bool
	}{
		{"mel", []int{2, 3, 4}, 24, true}, {"mel", []int{2, 0, 4}, 0, true}, {"mel", []int{1, 4, 4}, 16, false},
		{"mel", []int{0, 4, 4}, 0, false}, {"mel", []int{2, 4}, 8, false}, {"mel", []int{2, 4, 1, 4}, 32, false},
		{"mel", []int{2, 3, 5}, 30, false}, {"mel", nil, 1, false}, {"mel", []int{2, 3, 4}, 23, false},
		{"bias", []int{2, 2}, 4, true}, {"bias", []int{4}, 4, false}, {"bias", []int{2, 3}, 6, false},
		{"number", nil, 1, true}, {"number", []int{1}, 1, false},
	} {
		e := &event.Probed{Step: 1}
		err := p.probe(e, c.name, array{c.shape, make([]float32, c.values)})
		if (err == nil) != c.ok || len(e.Tensors) == 1 != c.ok {
			t.Errorf("%s of %v: %v, %d tensors", c.name, c.shape, err, len(e.Tensors))
		}
	}
}

// TestDrawWeights: a matrix has its first axis from left to right; a large one is made of means, and what has one axis
// is not drawn.
func TestDrawWeights(t *testing.T) {
	for _, none := range []array{{nil, []float32{1}}, {[]int{3}, make([]float32, 3)}, {[]int{3, 1}, make([]float32, 3)},
		{[]int{1, 3}, make([]float32, 3)}, {[]int{0, 3}, nil}} {
		if got, err := drawWeights(none); got != nil || err != nil {
			t.Errorf("%v: %d bytes, %v", none.shape, len(got), err)
		}
	}
	a := array{[]int{2, 2, 2}, []float32{0, 0, 0, 0, 0, 0, 0, 9}}
	data, err := drawWeights(a)
	if err != nil {
		t.Fatal(err)
	}
	want, err := picture.Heat(picture.Step{Size: 1}, picture.Matrix{Values: a.values, Columns: 4})
	if err != nil || !bytes.Equal(data, want) {
		t.Error("it is not the matrix of 2 and 4")
	}
	m := shrunk([]float32{
		1, 3, 5, 7, 9,
		3, 5, 7, 9, 9,
		2, 2, 4, 4, 6,
	}, 5, 3)
	if !slices.Equal(m.Values, []float32{2, 6, 9, 4, 8, 9, 2, 4, 6}) || m.Columns != 3 {
		t.Errorf("%v", m)
	}
	m = shrunk(make([]float32, 1000*600), 600, side)
	if rows := len(m.Values) / m.Columns; rows != 250 || m.Columns != 200 {
		t.Errorf("%d rows, %d columns", rows, m.Columns)
	}
}
