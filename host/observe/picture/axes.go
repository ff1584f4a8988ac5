package picture

import (
	"fmt"
	"image"
	"math"
	"strconv"
	"strings"
)

// The space for the axes beside a picture, in pixels.
const (
	axisLeft   = 80
	axisBottom = 24
	dot        = 2  // pixels of a dot of a character, in each direction
	tick       = 4  // pixels
	apart      = 60 // pixels between two labels, at least
	nameHeight = 5*dot + 6
)

// label is a text at a place of an axis, in pixels.
type label struct {
	at   int
	text string
}

// panel is a part of a picture with its name and the axis of its values.
type panel struct {
	name    string
	picture *image.Paletted
	values  []label
}

// withAxes puts panels above each other, beside the axes of their values and above that of the time.
func withAxes(panels []panel, times []label) *image.Paletted {
	width, height := 0, 0
	for _, l := range times {
		width = max(width, l.at+widthOf(l.text))
	}
	for i, p := range panels {
		width, height = max(width, p.picture.Bounds().Dx()), height+p.height(i)
	}
	out := newImage(axisLeft+width, height+axisBottom)
	y := 0
	for i, p := range panels {
		y += p.height(i)
		size := p.picture.Bounds().Size()
		top := y - size.Y
		if p.name != "" {
			write(out, axisLeft, top-nameHeight+dot, p.name)
		}
		for row := range size.Y { // their palette is the same
			copy(out.Pix[out.PixOffset(axisLeft, top+row):], p.picture.Pix[p.picture.PixOffset(0, row):][:size.X])
		}
		for _, l := range p.values {
			fill(out, axisLeft-tick, top+l.at, tick, 1)
			write(out, axisLeft-tick-dot-widthOf(l.text), top+min(max(0, l.at-2*dot), size.Y-5*dot), l.text)
		}
	}
	for _, l := range times {
		fill(out, axisLeft+l.at, y, 1, tick)
		write(out, axisLeft+l.at, y+tick+dot, l.text)
	}
	return out
}

// height is what a panel takes, as the one of a number from 0 on.
func (p panel) height(number int) int {
	height := p.picture.Bounds().Dy()
	if p.name != "" {
		height += nameHeight
	}
	if number > 0 {
		height += between
	}
	return height
}

// ticks returns the labels of an axis of a length in pixels, of which each stands for so much, from 0 on.
func ticks(length int, pixel float64, unit string) (all []label) {
	step := math.Pow(10, math.Ceil(math.Log10(apart*pixel)))
	for _, part := range []float64{0.2, 0.5} {
		if part*step >= apart*pixel {
			step *= part
			break
		}
	}
	for i := 0; ; i++ {
		at := int(math.Round(float64(i) * step / pixel))
		if at >= length {
			return all
		}
		all = append(all, label{at, strconv.FormatFloat(float64(i)*step, 'g', 6, 64) + unit})
	}
}

// glyphs are the characters of labels, by rows of three dots.
var glyphs = map[rune][5]uint8{
	'0': {7, 5, 5, 5, 7}, '1': {2, 6, 2, 2, 7}, '2': {7, 1, 7, 4, 7}, '3': {7, 1, 7, 1, 7}, '4': {5, 5, 7, 1, 1},
	'5': {7, 4, 7, 1, 7}, '6': {7, 4, 7, 5, 7}, '7': {7, 1, 2, 2, 2}, '8': {7, 5, 7, 5, 7}, '9': {7, 5, 7, 1, 7},
	'.': {0, 0, 0, 0, 2}, '-': {0, 0, 7, 0, 0}, '+': {0, 2, 7, 2, 0}, '_': {0, 0, 0, 0, 7}, '/': {1, 1, 2, 4, 4},
	'a': {2, 5, 7, 5, 5}, 'b': {6, 5, 6, 5, 6}, 'c': {3, 4, 4, 4, 3}, 'd': {6, 5, 5, 5, 6}, 'e': {7, 4, 7, 4, 7},
	'f': {7, 4, 6, 4, 4}, 'g': {3, 4, 5, 5, 3}, 'h': {5, 5, 7, 5, 5}, 'i': {7, 2, 2, 2, 7}, 'j': {1, 1, 1, 5, 2},
	'k': {5, 5, 6, 5, 5}, 'l': {4, 4, 4, 4, 7}, 'm': {5, 7, 7, 5, 5}, 'n': {6, 5, 5, 5, 5}, 'o': {2, 5, 5, 5, 2},
	'p': {6, 5, 6, 4, 4}, 'q': {2, 5, 5, 7, 3}, 'r': {6, 5, 6, 5, 5}, 's': {3, 4, 2, 1, 6}, 't': {7, 2, 2, 2, 2},
	'u': {5, 5, 5, 5, 7}, 'v': {5, 5, 5, 5, 2}, 'w': {5, 5, 7, 7, 5}, 'x': {5, 5, 2, 5, 5}, 'y': {5, 5, 2, 2, 2},
	'z': {7, 1, 2, 4, 7},
}

func widthOf(text string) int { return 4 * dot * len(text) }

// write writes characters from left to right, those without a glyph as spaces.
func write(out *image.Paletted, x, y int, text string) {
	for i, r := range []rune(strings.ToLower(text)) {
		for row, bits := range glyphs[r] {
			for column := range 3 {
				if bits>>(2-column)&1 == 1 {
					fill(out, x+dot*(4*i+column), y+dot*row, dot, dot)
				}
			}
		}
	}
}

func fill(out *image.Paletted, x, y, width, height int) {
	paintBox(out, image.Rect(x, y, x+width, y+height), light)
}

// ends returns the labels of the largest and the smallest value of a curve.
func ends(height int, low, high float64) []label {
	return []label{{0, fmt.Sprintf("%.3g", high)}, {height - 1, fmt.Sprintf("%.3g", low)}}
}
