package layer3

import "errors"

// side is the side information of a frame.
type side struct {
	bytes    [32 + slack]byte
	again    [2][4]bool // the second granule takes these scale factors from the first
	granules [2][2]granule
}

// The types of blocks.
const (
	normal = iota
	start
	short
	stop
)

// granule is the side information of a granule of a channel, and what its data says.
type granule struct {
	bits        int // of the data
	pairs       int // of large values
	gain        int
	compression int
	block       int
	mixed       bool // the lowest frequencies of short blocks are in a long one
	tables      [3]int
	weaker      [3]int // gain of the short blocks
	regions     [2]int // ends of the first two, in lines
	pre         bool   // amplify high frequencies
	coarse      bool   // scale factors are steps of 6 dB, not 3
	quads       int    // table of the small values

	layout  *layout
	factors [39]uint8
	illegal [39]uint8 // the lowest value of a factor that is no position of intensity stereo
	used    int       // lines, after which all are zeros
}

var errSide = errors.New("damaged: the side information of the frame is not valid")

// parse reads the side information (ISO/IEC 11172-3 and 13818-3, section 2.4.1.7).
func (s *side) parse(f *Frame) error {
	clear(s.bytes[copy(s.bytes[:], f.Side):])
	b := bitReader{data: s.bytes[:]}
	s.again = [2][4]bool{}
	if f.Version == 0 {
		b.at = 9 + 5 - 2*(f.Channels-1) // where the data begins, and private bits
		for c := range f.Channels {
			for i := range s.again[c] {
				s.again[c][i] = b.read(1) == 1
			}
		}
	} else {
		b.at = 8 + f.Channels
	}
	for g := range f.granules() {
		for c := range f.Channels {
			if err := s.granules[g][c].parse(&b, f); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *granule) parse(b *bitReader, f *Frame) error {
	*g = granule{bits: b.read(12), pairs: b.read(9), gain: b.read(8)}
	lower := f.Version > 0
	if g.compression = b.read(4); lower {
		g.compression = g.compression<<5 | b.read(5)
	}
	bands := &rates[f.Version][f.Rate]
	if b.read(1) == 1 {
		g.block, g.mixed = b.read(2), b.read(1) == 1
		g.tables = [3]int{b.read(5), b.read(5), 0}
		g.weaker = [3]int{b.read(3), b.read(3), b.read(3)}
		g.regions = [2]int{int(bands.long[8]), lines}
		if g.block == short && !g.mixed {
			g.regions[0] = 3 * int(bands.short[3])
		}
		if g.block == normal {
			return errSide
		}
		g.mixed = g.mixed && g.block == short
	} else {
		g.tables = [3]int{b.read(5), b.read(5), b.read(5)}
		first := b.read(4) + 1
		second := first + b.read(3) + 1
		if second >= len(bands.long) {
			second = len(bands.long) - 1 // of an encoder that rounds up
		}
		g.regions = [2]int{int(bands.long[first]), int(bands.long[second])}
	}
	if !lower {
		g.pre = b.read(1) == 1
	}
	g.coarse = b.read(1) == 1
	g.quads = b.read(1)
	if g.pairs > lines/2 {
		return errSide
	}
	switch {
	case g.mixed:
		g.layout = &bands.mixed
	case g.block == short:
		g.layout = &bands.shorts
	default:
		g.layout = &bands.longs
	}
	if len(g.layout.widths) == 0 {
		return ErrUnsupported // mixed blocks at 8,000 Hz, where a band of short blocks would be split
	}
	return nil
}
