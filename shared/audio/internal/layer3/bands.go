package layer3

// layout is how the lines of a granule are divided into bands, in the order of the data. The three short blocks of a
// band come one after another.
type layout struct {
	widths []int
	long   int // bands of the long block; the others are three for each band of short blocks
	ends   []int
}

// rate is the bands of a sample rate.
type rate struct {
	long                 [23]int16
	short                [14]int16
	longs, shorts, mixed layout
}

// The first lines of the bands of long and short blocks, ISO/IEC 11172-3, table B.8, and 13818-3, table B.2. Those of
// MPEG-2.5 are the ones that LAME writes.
var rates = [3][3]rate{
	{
		{
			long: [23]int16{
				0, 4, 8, 12, 16, 20, 24, 30, 36, 44, 52, 62, 74, 90, 110, 134, 162, 196, 238, 288, 342, 418, 576,
			},
			short: [14]int16{0, 4, 8, 12, 16, 22, 30, 40, 52, 66, 84, 106, 136, 192},
		}, {
			long: [23]int16{
				0, 4, 8, 12, 16, 20, 24, 30, 36, 42, 50, 60, 72, 88, 106, 128, 156, 190, 230, 276, 330, 384, 576,
			},
			short: [14]int16{0, 4, 8, 12, 16, 22, 28, 38, 50, 64, 80, 100, 126, 192},
		}, {
			long: [23]int16{
				0, 4, 8, 12, 16, 20, 24, 30, 36, 44, 54, 66, 82, 102, 126, 156, 194, 240, 296, 364, 448, 550, 576,
			},
			short: [14]int16{0, 4, 8, 12, 16, 22, 30, 42, 58, 78, 104, 138, 180, 192},
		},
	}, {
		{
			long:  lowLong,
			short: [14]int16{0, 4, 8, 12, 18, 24, 32, 42, 56, 74, 100, 132, 174, 192},
		}, {
			long: [23]int16{
				0, 6, 12, 18, 24, 30, 36, 44, 54, 66, 80, 96, 114, 136, 162, 194, 232, 278, 332, 394, 464, 540, 576,
			},
			short: [14]int16{0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 136, 180, 192},
		},
		{long: lowLong, short: lowShort},
	}, {
		{long: lowLong, short: lowShort},
		{long: lowLong, short: lowShort},
		{
			long: [23]int16{
				0, 12, 24, 36, 48, 60, 72, 88, 108, 132, 160, 192, 232, 280, 336, 400, 476, 566, 568, 570, 572, 574,
				576,
			},
			short: [14]int16{0, 8, 16, 24, 36, 52, 72, 96, 124, 160, 162, 164, 166, 192},
		},
	},
}

var (
	lowLong = [23]int16{
		0, 6, 12, 18, 24, 30, 36, 44, 54, 66, 80, 96, 116, 140, 168, 200, 238, 284, 336, 396, 464, 522, 576,
	}
	lowShort = [14]int16{0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 134, 174, 192}
)

func init() {
	for v := range rates {
		for i := range rates[v] {
			rates[v][i].divide(v > 0)
		}
	}
}

// mixedLines is how many lines of a mixed granule are in the long block.
const mixedLines = 36

// divide sets the layouts.
func (r *rate) divide(lower bool) {
	long := func(l *layout, bands int) {
		for i := range bands {
			l.widths = append(l.widths, int(r.long[i+1]-r.long[i]))
		}
		l.long = bands
	}
	short := func(l *layout, first int) {
		for i := first; i < 13; i++ {
			w := int(r.short[i+1] - r.short[i])
			l.widths = append(l.widths, w, w, w)
		}
	}
	long(&r.longs, 22)
	short(&r.shorts, 0)
	bands := 8
	if lower {
		bands = 6
	}
	if r.long[bands] == mixedLines && 3*r.short[3] == mixedLines {
		long(&r.mixed, bands)
		short(&r.mixed, 3)
	}
	for _, l := range []*layout{&r.longs, &r.shorts, &r.mixed} {
		end := 0
		for _, w := range l.widths {
			end += w
			l.ends = append(l.ends, end)
		}
	}
}
