// Package picture draws numbers as PNG files: matrices such as spectrograms and attention as heat maps, and rows of
// values as curves.
//
//	png, err := picture.Heat(picture.Step{Size: 0.0116, Unit: "s"},
//		picture.Matrix{Name: "true", Values: mel, Columns: 80}, picture.Matrix{Name: "spoken", Values: spoken, Columns: 80})
//
// It writes no file: [disk.Replace] and [files.Path] do.
package picture

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"math"
	"slices"
)

const (
	cell        = 4    // pixels of a value of a matrix in each direction, less where it has many
	mostAcross  = 2048 // pixels from left to right; several rows beyond it are averaged
	mostUp      = 1024 // pixels from the bottom to the top, as well
	curveHeight = 240
)

// Step is how far two rows are apart.
type Step struct {
	Size float64
	Unit string // after each label and a space: digits and small letters
}

// Matrix is what a heat map shows.
type Matrix struct {
	Name    string    // above it in small letters; may be empty
	Values  []float32 // row after row
	Columns int       // values of a row
}

// Heat draws matrices above each other, the first one at the top, with the same limits of colours: those of all finite
// values. Rows are drawn from left to right, and the columns of each from the bottom to the top: low frequencies are at
// the bottom. The larger a value, the lighter it is; what is not finite is red.
func Heat(step Step, matrices ...Matrix) ([]byte, error) {
	low, high := limits(matrices)
	most := 0
	for _, m := range matrices {
		if m.Columns <= 0 || len(m.Values) == 0 || len(m.Values)%m.Columns != 0 {
			return nil, errors.New("a picture needs whole rows of one value or more")
		}
		most = max(most, len(m.Values)/m.Columns)
	}
	across := scaleOf(most, mostAcross)
	by := lettersOf(across.pixels(most))
	var panels []panel
	for _, m := range matrices {
		rows, up := len(m.Values)/m.Columns, scaleOf(m.Columns, mostUp)
		p := panel{name: m.Name, picture: newImage(across.pixels(rows), up.pixels(m.Columns))}
		height := p.picture.Bounds().Dy()
		for column := range up.cells(m.Columns) {
			for row := range across.cells(rows) {
				index := colour(m.mean(across.span(row, rows), up.span(column, m.Columns)), low, high)
				x, y := row*across.cell, height-(column+1)*up.cell
				paintBox(p.picture, image.Rect(x, y, x+across.cell, y+up.cell), index)
			}
		}
		for _, l := range ticks(height, by.up(), up.unit(), "") {
			p.values = append(p.values, label{height - 1 - l.at, l.text})
		}
		panels = append(panels, p)
	}
	return encode(withAxes(panels, ticks(across.pixels(most), by.across(), step.Size*across.unit(), step.Unit), by))
}

// Curve draws a row of values from left to right, the largest one at the top. What is not finite leaves a gap, and so
// do zeros that are no part of the curve, such as the pitch of an unvoiced frame.
func Curve(step Step, values []float32) ([]byte, error) {
	if len(values) == 0 {
		return nil, errors.New("a picture needs a value or more")
	}
	values = withoutMarks(values)
	low, high := limits([]Matrix{{Values: values}})
	across := scaleOf(len(values), mostAcross)
	p := newImage(across.pixels(len(values)), curveHeight)
	line := Matrix{Values: values, Columns: 1}
	for row := range across.cells(len(values)) {
		v := line.mean(across.span(row, len(values)), span{0, 1})
		if math.IsNaN(v) {
			continue
		}
		y := (curveHeight - 1) - int(share(v, low, high)*(curveHeight-1))
		paintBox(p, image.Rect(row*across.cell, y, (row+1)*across.cell, y+1), light)
	}
	panels := []panel{{picture: p, values: ends(curveHeight, low, high)}}
	by := lettersOf(p.Bounds().Dx())
	return encode(withAxes(panels, ticks(p.Bounds().Dx(), by.across(), step.Size*across.unit(), step.Unit), by))
}

// withoutMarks returns values with NaN for zeros, if those are further below the others than the others are apart. With
// such zeros, which mark frames without a value, the curve would lie in the upper part of the picture.
func withoutMarks(values []float32) []float32 {
	marked := slices.Clone(values)
	for i, v := range marked {
		if v == 0 {
			marked[i] = float32(math.NaN())
		}
	}
	if low, high := limits([]Matrix{{Values: marked}}); high-low < low {
		return marked
	}
	return values
}

// limits returns the smallest and the largest finite value, both 0 without one.
func limits(matrices []Matrix) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, m := range matrices {
		for _, v := range m.Values {
			if v := float64(v); !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	if low > high {
		return 0, 0
	}
	return low, high
}

// share is where a value lies between limits, from 0 to 1.
func share(v, low, high float64) float64 {
	if high <= low {
		return 0
	}
	return min(1, max(0, (v-low)/(high-low)))
}

// span are the values from one to before another one.
type span struct{ from, to int }

// mean returns the mean of a part, NaN where a value is not finite.
func (m Matrix) mean(rows, columns span) float64 {
	sum := 0.0
	for row := rows.from; row < rows.to; row++ {
		for column := columns.from; column < columns.to; column++ {
			sum += float64(m.Values[row*m.Columns+column])
		}
	}
	if math.IsInf(sum, 0) {
		return math.NaN()
	}
	return sum / float64((rows.to-rows.from)*(columns.to-columns.from))
}

// scale is how values become pixels: each so many, or the mean of some values one.
type scale struct{ cell, values int }

func scaleOf(values, most int) scale {
	if values > most {
		return scale{1, (values + most - 1) / most}
	}
	return scale{min(cell, most/values), 1}
}

func (s scale) cells(values int) int  { return (values + s.values - 1) / s.values }
func (s scale) pixels(values int) int { return s.cells(values) * s.cell }
func (s scale) unit() float64         { return float64(s.values) / float64(s.cell) } // values of a pixel

func (s scale) span(cell, values int) span {
	return span{cell * s.values, min(values, (cell+1)*s.values)}
}

func encode(picture image.Image) ([]byte, error) {
	var b bytes.Buffer
	err := png.Encode(&b, picture)
	return b.Bytes(), err
}

// paintBox fills what a picture has of a box. draw.Draw would search the palette for each pixel.
func paintBox(p *image.Paletted, box image.Rectangle, index uint8) {
	box = box.Intersect(p.Rect)
	for y := box.Min.Y; y < box.Max.Y; y++ {
		row := p.Pix[p.PixOffset(box.Min.X, y):][:box.Dx()]
		for x := range row {
			row[x] = index
		}
	}
}
