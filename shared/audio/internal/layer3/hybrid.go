package layer3

import "math"

// The samples of a subband, and the lines of its spectrum.
const (
	subbands = 32
	width    = lines / subbands
)

// butterflies are the factors that remove the aliasing between subbands (ISO/IEC 11172-3, table B.9).
var butterflies = func() (t [8][2]float32) {
	for i, c := range [8]float64{-0.6, -0.535, -0.33, -0.185, -0.095, -0.041, -0.0142, -0.0037} {
		t[i] = [2]float32{float32(1 / math.Sqrt(1+c*c)), float32(c / math.Sqrt(1+c*c))}
	}
	return t
}()

// long36 are the rows 0 to 8 and 18 to 26 of the inverse MDCT of 18 lines, short12 those 0 to 2 and 6 to 8 of that of
// 6. The others are the same in reverse order, those of the first half with the other sign.
var (
	long36  = mdct[[18][18]float32](18)
	short12 = mdct[[6][6]float32](6)
)

func mdct[T [18][18]float32 | [6][6]float32](n int) (t T) {
	rows := make([][]float32, n)
	for r := range rows {
		i := r
		if r >= n/2 {
			i = r + n/2
		}
		rows[r] = make([]float32, n)
		for k := range rows[r] {
			rows[r][k] = float32(math.Cos(math.Pi / float64(4*n) * float64((2*i+1+n)*(2*k+1))))
		}
	}
	switch t := any(&t).(type) {
	case *[18][18]float32:
		for i := range t {
			copy(t[i][:], rows[i])
		}
	case *[6][6]float32:
		for i := range t {
			copy(t[i][:], rows[i])
		}
	}
	return t
}

// windows are those of the block types (section 2.4.3.4.10.3); of short blocks, the first 12.
var windows = func() (t [4][2 * width]float32) {
	sine := func(i, n int) float32 { return float32(math.Sin(math.Pi / float64(n) * (float64(i) + 0.5))) }
	for i := range 2 * width {
		t[normal][i], t[start][i], t[stop][i] = sine(i, 36), sine(i, 36), sine(i, 36)
		switch {
		case i < 6:
			t[stop][i] = 0
		case i < 12:
			t[stop][i] = sine(i-6, 12)
		case i < 18:
			t[stop][i] = 1
		case i < 24:
			t[start][i] = 1
		case i < 30:
			t[start][i] = sine(i-18, 12)
		default:
			t[start][i] = 0
		}
		if i < 12 {
			t[short][i] = sine(i, 12)
		}
	}
	return t
}()

// filter turns the spectrum of a channel into samples of the subbands, and adds them to d.bands with a factor.
func (d *Decoder) filter(g *granule, channel int, by float32) {
	x, overlap := &d.spectrum[channel], &d.overlap[channel]
	edges := subbands - 1
	switch {
	case g.mixed:
		edges = 1
	case g.block == short:
		edges = 0
	}
	for e := 1; e <= edges && (e-1)*width < g.used; e++ {
		for i, c := range butterflies {
			low, high := x[e*width-1-i], x[e*width+i]
			x[e*width-1-i], x[e*width+i] = low*c[0]-high*c[1], high*c[0]+low*c[1]
		}
	}
	used := min(lines, g.used+width) // the butterflies reach the next subband
	var out [2 * width]float32
	for sb := range subbands {
		past, to := overlap[sb*width:][:width], d.bands[sb*width:][:width]
		if sb*width < used {
			block := g.block
			if g.mixed && sb < mixedLines/width {
				block = normal
			}
			in := (*[width]float32)(x[sb*width:])
			if block == short {
				inverseShort(&out, in)
			} else {
				inverseLong(&out, in, &windows[block])
			}
		} else {
			clear(out[:])
		}
		for i, v := range past {
			v = (v + out[i]) * by
			if sb&i&1 == 1 { // every other subband has its frequencies in reverse order
				v = -v
			}
			to[i] += v
			past[i] = out[width+i]
		}
	}
}

// inverseLong computes the inverse MDCT of a long block.
func inverseLong(out *[2 * width]float32, in *[width]float32, window *[2 * width]float32) {
	for r := range width / 2 {
		var a, b float32
		first, second := &long36[r], &long36[width/2+r]
		for k, v := range in {
			a += first[k] * v
			b += second[k] * v
		}
		out[r], out[width-1-r] = a*window[r], -a*window[width-1-r]
		out[width+r], out[2*width-1-r] = b*window[width+r], b*window[2*width-1-r]
	}
}

// inverseShort computes those of three short blocks, whose lines alternate and whose results overlap.
func inverseShort(out *[2 * width]float32, in *[width]float32) {
	clear(out[:])
	const n = width / 3
	window := &windows[short]
	for w := range 3 {
		to := out[n+n*w:][:2*n]
		for r := range n / 2 {
			var a, b float32
			for k := range n {
				v := in[3*k+w]
				a += short12[r][k] * v
				b += short12[n/2+r][k] * v
			}
			to[r] += a * window[r]
			to[n-1-r] -= a * window[n-1-r]
			to[n+r] += b * window[n+r]
			to[2*n-1-r] += b * window[2*n-1-r]
		}
	}
}
