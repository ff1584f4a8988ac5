package layer3

// The bits of the scale factors of low and high bands, by compression (ISO/IEC 11172-3, section 2.4.2.7).
var compressions = [16][2]int{
	{0, 0}, {0, 1}, {0, 2}, {0, 3}, {3, 0}, {1, 1}, {1, 2}, {1, 3},
	{2, 1}, {2, 2}, {2, 3}, {3, 1}, {3, 2}, {3, 3}, {4, 2}, {4, 3},
}

// The ends of the groups of bands that a second granule may take from the first.
var groups = [4]int{6, 11, 16, 21}

// The numbers of bands with scale factors of the same width, for long, short and mixed blocks (ISO/IEC 13818-3, section
// 2.4.3.2). The last three rows are for the second channel in intensity stereo.
var partitions = [6][3][4]int{
	{{6, 5, 5, 5}, {9, 9, 9, 9}, {6, 9, 9, 9}},
	{{6, 5, 7, 3}, {9, 9, 12, 6}, {6, 9, 12, 6}},
	{{11, 10, 0, 0}, {18, 18, 0, 0}, {15, 18, 0, 0}},
	{{7, 7, 7, 0}, {12, 12, 12, 0}, {6, 15, 12, 0}},
	{{6, 6, 6, 3}, {12, 9, 9, 6}, {6, 12, 9, 6}},
	{{8, 8, 5, 0}, {15, 12, 9, 0}, {6, 18, 9, 0}},
}

// scaleFactors reads those of a granule of a channel. The highest band has none: its factor is 0.
func (s *side) scaleFactors(b *bitReader, f *Frame, number, channel int) error {
	g := &s.granules[number][channel]
	if f.Version > 0 {
		g.lower(b, f.Intensity && channel == 1)
		return nil
	}
	bits := compressions[g.compression]
	low, n := 11, 21
	switch {
	case g.mixed:
		low, n = 8+9, 8+9+18
	case g.block == short:
		low, n = 18, 36
	}
	group := 0
	for i := range n {
		if group < 3 && i == groups[group] {
			group++
		}
		g.illegal[i] = 7
		if number == 1 && g.block != short && s.again[channel][group] {
			g.factors[i] = s.granules[0][channel].factors[i]
			continue
		}
		width := bits[1]
		if i < low {
			width = bits[0]
		}
		g.factors[i] = uint8(b.read(width))
	}
	return nil
}

// lower reads the scale factors of MPEG-2. second says that they are positions of intensity stereo where the second
// channel is silent.
func (g *granule) lower(b *bitReader, second bool) {
	var widths [4]int
	var row int
	v := g.compression
	switch {
	case second && v>>1 < 180:
		v >>= 1
		widths, row = [4]int{v / 36, v % 36 / 6, v % 6}, 3
	case second && v>>1 < 244:
		v = v>>1 - 180
		widths, row = [4]int{v >> 4 & 3, v >> 2 & 3, v & 3}, 4
	case second:
		v = v>>1 - 244
		widths, row = [4]int{v / 3, v % 3}, 5
	case v < 400:
		widths, row = [4]int{v >> 4 / 5, v >> 4 % 5, v >> 2 & 3, v & 3}, 0
	case v < 500:
		v -= 400
		widths, row = [4]int{v >> 2 / 5, v >> 2 % 5, v & 3}, 1
	default:
		v -= 500
		widths, row = [4]int{v / 3, v % 3}, 2
		g.pre = true
	}
	kind := 0
	switch {
	case g.mixed:
		kind = 2
	case g.block == short:
		kind = 1
	}
	i := 0
	for p, n := range partitions[row][kind] {
		for range n {
			g.factors[i] = uint8(b.read(widths[p]))
			if g.illegal[i] = uint8(1<<widths[p] - 1); widths[p] == 0 {
				g.illegal[i] = 1 // without bits, the position is 0
			}
			i++
		}
	}
}
