package layer3

import "math"

// power are the values to the power of 4/3, up to 15 and 13 bits more.
var power = func() (t [15 + 1<<13]float32) {
	for i := range t {
		t[i] = float32(math.Pow(float64(i), 4.0/3))
	}
	return t
}()

// Gains are in steps of a quarter of an octave.
const (
	unity   = 210
	lowest  = -unity - 8*7 - 4*(15+3) - 2
	highest = 255 - unity
)

var gains = func() (t [highest - lowest + 1]float32) {
	for i := range t {
		t[i] = float32(math.Exp2(float64(i+lowest) / 4))
	}
	return t
}()

// emphasis is what pre adds to the scale factors of long blocks (ISO/IEC 11172-3, table B.6).
var emphasis = [22]int{11: 1, 1, 1, 1, 2, 2, 3, 3, 3, 2, 0}

// scale multiplies the lines by the gains of their bands.
func (g *granule) scale(x *[lines]float32) {
	step := 2
	if g.coarse {
		step = 4
	}
	begin := 0
	for i, end := range g.layout.ends {
		if begin >= g.used {
			return
		}
		gain, factor := g.gain-unity, int(g.factors[i])
		if i < g.layout.long {
			if g.pre {
				factor += emphasis[i]
			}
		} else {
			gain -= 8 * g.weaker[(i-g.layout.long)%3]
		}
		by := gains[max(gain-step*factor, lowest)-lowest]
		for j := range x[begin:end] {
			x[begin+j] *= by
		}
		begin = end
	}
}

// half is the factor of the sum and the difference of two channels.
const half = math.Sqrt2 / 2

// stereo restores left and right. In the bands above the last line of the second channel, intensity stereo has a
// position instead of its spectrum: the scale factor of the band. Its second channel must have the blocks of the first.
func (d *Decoder) stereo(f *Frame, number int) {
	first, second := &d.side.granules[number][0], &d.side.granules[number][1]
	a, b := &d.spectrum[0], &d.spectrum[1]
	used := max(first.used, second.used)
	if !f.Intensity || first.layout != second.layout {
		if f.MiddleSide {
			middleSide(a[:], b[:])
			first.used, second.used = used, used
		}
		return
	}
	layout := second.layout
	var silent [3]bool // no line of the second channel at or above the band; for each of the short blocks
	for w := range silent {
		silent[w] = true
	}
	for i := len(layout.widths) - 1; i >= 0; i-- {
		begin, end, w := layout.ends[i]-layout.widths[i], layout.ends[i], 0
		if i >= layout.long {
			w = (i - layout.long) % 3
		}
		for _, v := range b[begin:end] {
			silent[w] = silent[w] && v == 0
		}
		is := silent[w]
		if i < layout.long {
			is = silent[0] && silent[1] && silent[2]
		}
		place := i // the highest bands have the positions of those below
		switch n := len(layout.widths); {
		case i == n-1 && layout.long == n:
			place = i - 1
		case i >= n-3 && layout.long < n:
			place = i - 3
		}
		position := int(second.factors[place])
		switch {
		case is && position < int(second.illegal[place]):
			left, right := intensity(f.Version > 0, second.compression, position)
			for j := begin; j < end; j++ {
				a[j], b[j] = a[j]*left, a[j]*right
			}
		case f.MiddleSide:
			middleSide(a[begin:end], b[begin:end])
		}
	}
	first.used, second.used = used, used
}

func middleSide(a, b []float32) {
	for i, m := range a {
		s := b[i]
		a[i], b[i] = (m+s)*half, (m-s)*half
	}
}

// intensity returns the factors of both channels for a position (ISO/IEC 11172-3, section 2.4.3.4; 13818-3, 2.4.3.2).
func intensity(lower bool, compression, position int) (left, right float32) {
	if !lower {
		t := math.Tan(float64(position) * math.Pi / 12)
		if position == 6 {
			return 1, 0
		}
		return float32(t / (1 + t)), float32(1 / (1 + t))
	}
	step := 0.25
	if compression&1 == 1 {
		step = 0.5
	}
	by := float32(math.Exp2(-step * float64((position+1)/2)))
	if position%2 == 1 {
		return by, 1
	}
	return 1, by
}

// widest is the largest band of short blocks, at 48,000 Hz.
const widest = 66

// reorder sorts the lines of short blocks by frequency: in the data, those of a block follow one another within a band.
func (g *granule) reorder(x *[lines]float32) {
	if g.block != short {
		return
	}
	var sorted [3 * widest]float32
	for i := g.layout.long; i < len(g.layout.widths); i += 3 {
		w := g.layout.widths[i]
		band := x[g.layout.ends[i]-w:][:3*w]
		for j := range w {
			sorted[3*j], sorted[3*j+1], sorted[3*j+2] = band[j], band[w+j], band[2*w+j]
		}
		copy(band, sorted[:3*w])
	}
	g.used = min(lines, g.used+3*widest)
}
