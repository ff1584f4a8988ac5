package plugintry

import (
	"fmt"
	"image"
	"image/color"
	paint "image/draw"
	"math"
	"strconv"
)

// The space for the axes beside a picture, in pixels.
const (
	axisLeft   = 80
	axisBottom = 24
	dot        = 2  // pixels of a dot of a character, in each direction
	tick       = 4  // pixels
	apart      = 60 // pixels between two labels, at least
)

// label is a text at a place of an axis, in pixels.
type label struct {
	at   int
	text string
}

// withAxes puts a picture beside the axis of its values and above that of the time.
func withAxes(picture *image.Gray, times, values []label) *image.Gray {
	size := picture.Bounds().Size()
	width := size.X
	for _, l := range times {
		width = max(width, l.at+widthOf(l.text))
	}
	out := image.NewGray(image.Rect(0, 0, axisLeft+width, size.Y+axisBottom))
	paint.Draw(out, picture.Bounds().Add(image.Pt(axisLeft, 0)), picture, image.Point{}, paint.Src)
	for _, l := range times {
		fill(out, axisLeft+l.at, size.Y, 1, tick)
		write(out, axisLeft+l.at, size.Y+tick+dot, l.text)
	}
	for _, l := range values {
		fill(out, axisLeft-tick, l.at, tick, 1)
		write(out, axisLeft-tick-dot-widthOf(l.text), min(max(0, l.at-2*dot), size.Y-5*dot), l.text)
	}
	return out
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
	'.': {0, 0, 0, 0, 2}, '-': {0, 0, 7, 0, 0}, '+': {0, 2, 7, 2, 0}, 'e': {7, 5, 7, 4, 7}, 's': {3, 4, 2, 1, 6},
}

func widthOf(text string) int { return 4 * dot * len(text) }

// write writes characters from left to right.
func write(out *image.Gray, x, y int, text string) {
	for i, r := range text {
		for row, bits := range glyphs[r] {
			for column := range 3 {
				if bits>>(2-column)&1 == 1 {
					fill(out, x+dot*(4*i+column), y+dot*row, dot, dot)
				}
			}
		}
	}
}

func fill(out *image.Gray, x, y, width, height int) {
	paint.Draw(out, image.Rect(x, y, x+width, y+height), image.NewUniform(color.Gray{Y: 255}), image.Point{}, paint.Src)
}

// ends returns the labels of the largest and the smallest value of a curve.
func ends(height int, low, high float32) []label {
	return []label{{0, fmt.Sprintf("%.3g", high)}, {height - 1, fmt.Sprintf("%.3g", low)}}
}

// bins returns the labels of the columns of a matrix, which are shown from the bottom to the top.
func bins(columns int) (all []label) {
	for _, l := range ticks(columns*cell, 1.0/cell, "") {
		all = append(all, label{columns*cell - 1 - l.at, l.text})
	}
	return all
}
