package picture

import (
	"bytes"
	"image"
	"image/png"
	"math"
	"slices"
	"testing"
)

// small are the letters of small pictures.
const small = letters(2)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		length       int
		pixel        float64
		second, last string
	}{
		{1200, 0.0025, "0.2 s", "2.8 s"}, // 3 s of frames of 10 ms
		{1764, 0.0029, "0.2 s", "5 s"},   // 441 frames of 11.6 ms
		{101, 0.5, "50 s", "50 s"},
		{10, 0.0025, "0 s", "0 s"},
	} {
		all := ticks(c.length, small.across(), c.pixel, "s")
		if all[0] != (label{0, "0 s"}) || all[min(1, len(all)-1)].text != c.second || all[len(all)-1].text != c.last {
			t.Errorf("%d pixels of %g s: %v", c.length, c.pixel, all)
		}
		for i := range all[1:] {
			if all[i+1].at-all[i].at < small.across() {
				t.Errorf("%v and %v overlap", all[i], all[i+1])
			}
		}
	}
}

func decoded(t *testing.T, data []byte, err error) *image.Paletted {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	p, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	return p.(*image.Paletted)
}

var tenMS = Step{0.01, "s"}

// TestAxes: below a matrix are ticks with labels every 0.2 s, and beside it every 20 columns.
func TestAxes(t *testing.T) {
	const frames, columns = 85, 80 // the last label needs more room than the values after its tick
	data, err := Heat(tenMS, Matrix{Values: make([]float32, frames*columns), Columns: columns})
	picture := decoded(t, data, err)
	lit := func(x0, y0, x1, y1 int) (n int) {
		for x := x0; x < x1; x++ {
			for y := y0; y < y1; y++ {
				if picture.ColorIndexAt(x, y) == light {
					n++
				}
			}
		}
		return n
	}
	const height = columns * cell
	tick, bottom := small.tick(), small.bottom()
	last := ticks(frames*cell, small.across(), 0.01/cell, "s")[4]
	if want := leastLeft + last.at + small.width(last.text); picture.Bounds().Dx() != want ||
		want <= leastLeft+frames*cell {
		t.Errorf("the picture is %d pixels wide, and its last label ends at %d", picture.Bounds().Dx(), want)
	}
	for i := range 5 { // 0.2 s are 20 frames
		x := leastLeft + i*20*cell
		if lit(x, height, x+1, height+tick) != tick || lit(x+1, height, x+20*cell, height+tick) != 0 ||
			lit(x, height+tick, x+20*cell, height+bottom) < 20 {
			t.Errorf("no tick and label of %d00 ms", 2*i)
		}
	}
	for i := range 4 {
		y := height - 1 - i*20*cell
		if lit(leastLeft-tick, y, leastLeft, y+1) != tick ||
			lit(0, max(0, y-12), leastLeft-tick, min(height, y+12)) < 10 {
			t.Errorf("no tick and label of column %d", 20*i)
		}
	}
	if lit(leastLeft, 0, leastLeft+frames*cell, height) != 0 {
		t.Error("axes are drawn over the values")
	}
}

// TestOrientation: rows go from left to right and columns from the bottom to the top; two matrices have one scale, the
// first one is at the top, and each has its name above it.
func TestOrientation(t *testing.T) {
	nan := float32(math.NaN())
	data, err := Heat(tenMS, Matrix{"true", []float32{0, 1, 2, 3, 4, nan}, 2}, Matrix{"said", []float32{8, 0}, 2})
	picture := decoded(t, data, err)
	at := func(row, column, top int) float64 { // the value that is seen
		x, y := leastLeft+row*cell+1, top+(2-column)*cell-1
		if i := picture.ColorIndexAt(x, y); i >= first {
			return 8 * float64(i-first) / float64(255-first)
		}
		return -float64(picture.ColorIndexAt(x, y))
	}
	upper, lower := small.nameHeight(), 2*small.nameHeight()+2*cell+small.between()
	for i, want := range []float64{0, 1, 2, 3, 4, -broken} {
		if got := at(i/2, i%2, upper); math.Abs(got-want) > 0.05 {
			t.Errorf("row %d, column %d of the upper one shows %g, want %g", i/2, i%2, got, want)
		}
	}
	if at(0, 0, lower) != 8 || at(0, 1, lower) != 0 {
		t.Errorf("the lower one shows %g above %g", at(0, 1, lower), at(0, 0, lower))
	}
	for _, top := range []int{upper, lower} {
		if !slices.Contains(picture.Pix[(top-small.nameHeight())*picture.Stride:top*picture.Stride], light) {
			t.Errorf("no name above the matrix at %d", top)
		}
	}
}

// TestLarge: a matrix of any size is at most so many pixels, each of which is the mean of its values.
func TestLarge(t *testing.T) {
	const rows, columns = 3 * mostAcross, 2*mostUp + 1
	m := Matrix{Values: make([]float32, rows*columns), Columns: columns}
	for i := range m.Values {
		m.Values[i] = float32(i / columns % 3) // of three rows, the mean is 1
	}
	m.Values[0] = 9 // at the left bottom: the mean of nine values is 2
	data, err := Heat(tenMS, m)
	picture := decoded(t, data, err)
	height := (columns + 2) / 3
	by := lettersOf(mostAcross)
	left := by.left([]panel{{values: ticks(height, by.up(), 3, "")}})
	if size := picture.Bounds().Size(); size.X > left+mostAcross+by.width("60 s") || size.Y > mostUp+by.bottom() ||
		left < by.width("500") {
		t.Errorf("%v pixels", size)
	}
	shown := func(row, column int) float64 {
		return 9 * float64(picture.ColorIndexAt(left+row, height-1-column)-first) / float64(255-first)
	}
	if corner, other := shown(0, 0), shown(7, 5); math.Abs(corner-2) > 0.05 || math.Abs(other-1) > 0.05 {
		t.Errorf("pixels show %g and %g, want 2 and 1", corner, other)
	}
}

// TestReadable: the letters of a wide picture that a page shows as wide as a telephone, on 340 pixels, are six pixels
// high or more, also where the picture has the space of its axes. They do not touch each other.
func TestReadable(t *testing.T) {
	for _, frames := range []int{20, 85, 300, 454, 600, 4000} {
		data, err := Heat(tenMS, Matrix{Name: "recording", Values: make([]float32, frames*80), Columns: 80})
		p := decoded(t, data, err)
		by := lettersOf(min(frames*cell, mostAcross))
		height := 5 * float64(by)
		if shown := height * min(1, 340/float64(p.Bounds().Dx())); shown < 6 {
			t.Errorf("%d frames: letters are %.1f pixels high", frames, shown)
		}
		all := ticks(frames*cell, by.across(), 0.01/cell, "s")
		for i := range all[1:] {
			if all[i].at+by.width(all[i].text) > all[i+1].at {
				t.Errorf("%d frames: %v and %v overlap", frames, all[i], all[i+1])
			}
		}
		if up := ticks(80*cell, by.up(), 1.0/cell, ""); len(up) < 4 || up[1].at < 6*int(by) {
			t.Errorf("%d frames: beside 80 bands are %v", frames, up)
		}
	}
}

// TestLightness: the lightness of the scale, L* of CIELAB, grows from each colour to the next, over nearly all that a
// screen has.
func TestLightness(t *testing.T) {
	lightness := func(index int) float64 {
		r, g, b, _ := palette[index].RGBA()
		linear := func(v uint32) float64 {
			c := float64(v) / 0xffff
			if c <= 0.04045 {
				return c / 12.92
			}
			return math.Pow((c+0.055)/1.055, 2.4)
		}
		y := 0.2126*linear(r) + 0.7152*linear(g) + 0.0722*linear(b)
		if y <= 216.0/24389 {
			return y * 24389 / 27
		}
		return 116*math.Cbrt(y) - 16
	}
	for i := first + 1; i < len(palette); i++ {
		if lightness(i) < lightness(i-1)-0.2 { // 8 bits are not exact
			t.Errorf("colour %d has lightness %.2f after %.2f", i-first, lightness(i), lightness(i-1))
		}
		if i >= first+4 && lightness(i) <= lightness(i-4) {
			t.Errorf("colour %d is no lighter than the fourth before", i-first)
		}
	}
	if d, l := lightness(first), lightness(255); d > 15 || l < 90 {
		t.Errorf("lightness from %.1f to %.1f", d, l)
	}
}

// TestCurve: a row of values is a curve, its largest value at the top; a value that is not finite is left out.
func TestCurve(t *testing.T) {
	data, err := Curve(tenMS, []float32{0, 1, 0.5, float32(math.Inf(1))})
	picture := decoded(t, data, err)
	for x, y := range map[int]int{0: curveHeight - 1, cell: 0, 2 * cell: curveHeight - 1 - (curveHeight-1)/2} {
		if picture.ColorIndexAt(leastLeft+x, y) != light {
			t.Errorf("no light at %d, %d", x, y)
		}
	}
	for y := range curveHeight {
		if picture.ColorIndexAt(leastLeft+3*cell, y) == light {
			t.Errorf("infinity is at %d", y)
		}
	}
}

// TestCurveWithMarks: zeros far below the other values are left out, and the curve has all of the height.
func TestCurveWithMarks(t *testing.T) {
	for _, c := range []struct {
		values []float32
		rows   []int // of the picture; -1 for a gap
	}{
		{[]float32{0, 5, 0, 5.5, 6}, []int{-1, curveHeight - 1, -1, curveHeight - 1 - (curveHeight-1)/2, 0}},
		{[]float32{0, 1, 3}, []int{curveHeight - 1, 160, 0}}, // zero is a value as well as the others
		{[]float32{0, -5, -6}, []int{0, 200, curveHeight - 1}},
		{[]float32{0, 0}, []int{curveHeight - 1, curveHeight - 1}},
		{[]float32{0, 5, 5}, []int{-1, curveHeight - 1, curveHeight - 1}}, // all others the same
	} {
		data, err := Curve(tenMS, c.values)
		picture := decoded(t, data, err)
		for i, want := range c.rows {
			got := -1
			for y := range curveHeight {
				if picture.ColorIndexAt(leastLeft+i*cell, y) == light {
					got = y
				}
			}
			if got != want {
				t.Errorf("value %d of %v is in row %d, want %d", i, c.values, got, want)
			}
		}
	}
}

// TestLabelsInside: the labels of a curve's ends have a margin to the edges of the picture.
func TestLabelsInside(t *testing.T) {
	data, err := Curve(tenMS, []float32{4.5, 5.25})
	picture := decoded(t, data, err)
	var rows []int // with letters
	for y := range curveHeight {
		if slices.Contains(picture.Pix[y*picture.Stride:][:leastLeft-small.tick()], light) {
			rows = append(rows, y)
		}
	}
	if len(rows) != 2*5*int(small) || rows[0] != int(small) || rows[len(rows)-1] != curveHeight-1-int(small) {
		t.Errorf("letters are in the rows %v", rows)
	}
}

func TestRefused(t *testing.T) {
	for _, m := range []Matrix{{}, {Columns: 2, Values: []float32{1}}, {Values: []float32{1}}} {
		if _, err := Heat(tenMS, m); err == nil {
			t.Errorf("%+v is drawn", m)
		}
	}
	if _, err := Curve(tenMS, nil); err == nil {
		t.Error("nothing is drawn")
	}
	if _, err := Heat(tenMS, Matrix{Columns: 1, Values: []float32{float32(math.NaN())}}); err != nil {
		t.Errorf("without a finite value: %v", err)
	}
}

// BenchmarkHeat draws as many matrices as a probe has at most, of the size of attention over half a thousand frames.
func BenchmarkHeat(b *testing.B) {
	const size = 512
	all := make([]Matrix, 16)
	for i := range all {
		all[i] = Matrix{Name: "a", Values: make([]float32, size*size), Columns: size}
		for j := range all[i].Values {
			all[i].Values[j] = float32((j * 7919) % 1009)
		}
	}
	for b.Loop() {
		if _, err := Heat(Step{Size: 1}, all...); err != nil {
			b.Fatal(err)
		}
	}
}
