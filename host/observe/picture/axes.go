package picture

import (
	"fmt"
	"image"
	"math"
	"strconv"
	"strings"
)

// leastLeft is the least space for the axis of values, in pixels.
const leastLeft = 80

// letters are what labels are written with: a dot of a character has so many pixels in each direction. All space for
// labels grows with it.
type letters int

// lettersOf returns letters for a picture of a width in pixels. A page shows a wide picture as narrow as a column or a
// phone, where its labels have to be read, too: they are a fiftieth as high as it is wide.
func lettersOf(width int) letters { return letters(max(2, width/240)) }

func (l letters) tick() int       { return 2 * int(l) }
func (l letters) across() int     { return 30 * int(l) }        // of two labels beside each other, at least
func (l letters) up() int         { return max(60, 10*int(l)) } // of two above each other
func (l letters) bottom() int     { return 12 * int(l) }        // the axis of time
func (l letters) nameHeight() int { return 8 * int(l) }
func (l letters) between() int    { return 4 * int(l) } // two matrices

// left is the space for the axis of values.
func (l letters) left(panels []panel) int {
	space := leastLeft
	for _, p := range panels {
		for _, v := range p.values {
			space = max(space, l.width(v.text)+l.tick()+2*int(l))
		}
	}
	return space
}

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
func withAxes(panels []panel, times []label, by letters) *image.Paletted {
	width, height := 0, 0
	for _, l := range times {
		width = max(width, l.at+by.width(l.text))
	}
	for i, p := range panels {
		width, height = max(width, p.picture.Bounds().Dx()), height+p.height(i, by)
	}
	left, tick, dot := by.left(panels), by.tick(), int(by)
	out := newImage(left+width, height+by.bottom())
	y := 0
	for i, p := range panels {
		y += p.height(i, by)
		size := p.picture.Bounds().Size()
		top := y - size.Y
		if p.name != "" {
			by.write(out, left, top-by.nameHeight()+dot, p.name)
		}
		for row := range size.Y { // their palette is the same
			copy(out.Pix[out.PixOffset(left, top+row):], p.picture.Pix[p.picture.PixOffset(0, row):][:size.X])
		}
		for _, l := range p.values {
			fill(out, left-tick, top+l.at, tick, 1)
			by.write(out, left-tick-dot-by.width(l.text), top+min(max(dot, l.at-2*dot), size.Y-6*dot), l.text)
		}
	}
	for _, l := range times {
		fill(out, left+l.at, y, 1, tick)
		by.write(out, left+l.at, y+tick+dot, l.text)
	}
	return out
}

// height is what a panel takes, as the one of a number from 0 on.
func (p panel) height(number int, by letters) int {
	height := p.picture.Bounds().Dy()
	if p.name != "" {
		height += by.nameHeight()
	}
	if number > 0 {
		height += by.between()
	}
	return height
}

// ticks returns the labels of an axis of a length in pixels, of which each stands for so much, from 0 on. They are at
// least so many pixels apart.
func ticks(length, apart int, pixel float64, unit string) (all []label) {
	if unit != "" {
		unit = " " + unit // in these letters, 0.2s reads as 0.25
	}
	least := float64(apart) * pixel
	step := math.Pow(10, math.Ceil(math.Log10(least)))
	for _, part := range []float64{0.2, 0.5} {
		if part*step >= least {
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

func (l letters) width(text string) int { return 4 * int(l) * len(text) }

// write writes characters from left to right, those without a glyph as spaces.
func (l letters) write(out *image.Paletted, x, y int, text string) {
	dot := int(l)
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
