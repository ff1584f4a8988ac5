package picture

import (
	"image"
	"image/color"
	"math"
)

// The first colours of the palette; those of values follow, from dark to light.
const (
	dark   = iota // the ground
	light         // axes, labels and curves
	broken        // what is not finite
	first
)

// palette has the colours of all pictures.
var palette = newPalette()

// newPalette makes the scale of colours by the formula of Green, A colour scheme for the display of astronomical
// intensity images, Bull. Astron. Soc. India 39 (2011): a helix around the diagonal of greys. Here it goes from a dark
// violet over blue and green to white. Its lightness grows with the value, so that it reads the same in grey
// and for the colour-blind.
func newPalette() color.Palette {
	p := make(color.Palette, 256)
	p[dark], p[light], p[broken] = color.RGBA{A: 255}, color.RGBA{255, 255, 255, 255}, color.RGBA{230, 30, 30, 255}
	for i := first; i < len(p); i++ {
		const start, turns, hue, darkest, lightest = 0.35, -0.75, 1.1, 0.08, 0.93
		at := float64(i-first) / float64(len(p)-1-first)
		grey := darkest + (lightest-darkest)*at
		angle, amount := 2*math.Pi*(start/3+1+turns*at), hue*grey*(1-grey)/2
		sin, cos := math.Sincos(angle)
		level := func(cosine, sine float64) uint8 {
			return uint8(math.Round(255 * min(1, max(0, grey+amount*(cosine*cos+sine*sin)))))
		}
		p[i] = color.RGBA{level(-0.14861, 1.78277), level(-0.29227, -0.90649), level(1.97294, 0), 255}
	}
	return p
}

// colour returns the place of a value's colour in the palette.
func colour(v, low, high float64) uint8 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return broken
	}
	return uint8(first + math.Round(share(v, low, high)*float64(len(palette)-1-first)))
}

func newImage(width, height int) *image.Paletted {
	return image.NewPaletted(image.Rect(0, 0, width, height), palette)
}
