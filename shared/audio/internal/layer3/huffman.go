package layer3

import "strconv"

// A code is looked up by its first bits. If it is longer, the entry has the place of the table of its next bits.
const (
	firstBits = 9
	nextBits  = 10 // of the longest code, of 19 bits
)

// code is an entry: the length of a code, or 0 if it is longer than the bits looked at; and its values, or a place.
type code struct {
	length uint8
	value  uint16
}

// codes are the tables of large values by number, and the two of small ones.
var codes [34][]code

func init() {
	for number, text := range huffmanCodes {
		codes[number] = lookup(text)
	}
	for number, p := range parents {
		if p.more > 0 {
			codes[number] = codes[p.table]
		}
	}
}

// lookup makes the table of some codes.
func lookup(text string) []code {
	t := make([]code, 1<<firstBits)
	bits := 0 // of the next code, from the top of 19 bits
	for ; len(text) > 0; text = text[3:] {
		length := int(text[0]-'a') + 1
		value, _ := strconv.ParseUint(text[1:3], 16, 8)
		at, free := bits>>nextBits, firstBits-length
		if length > firstBits {
			if t[at].value == 0 { // no table yet: place 0 is that of the first bits
				t[at].value = uint16(len(t))
				t = append(t, make([]code, 1<<nextBits)...)
			}
			at, free = int(t[at].value)+bits&(1<<nextBits-1), firstBits+nextBits-length
		}
		for i := range 1 << free {
			t[at+i] = code{uint8(length), uint16(value)}
		}
		bits += 1 << (firstBits + nextBits - length)
	}
	return t
}

// next returns the values of the next code.
func next(b *bitReader, t []code) int {
	v := b.peek()
	c := t[v>>(32-firstBits)]
	if c.length == 0 {
		c = t[int(c.value)+int(v>>(32-firstBits-nextBits)&(1<<nextBits-1))]
	}
	b.at += int(c.length)
	return int(c.value)
}

// huffman reads the values of a granule, whose data ends at bit end (ISO/IEC 11172-3, section 2.4.2.7).
func (g *granule) huffman(b *bitReader, end int, to *[lines]float32) error {
	at := 0
	for region, limit := range [3]int{g.regions[0], g.regions[1], lines} {
		limit = min(limit, 2*g.pairs)
		number := g.tables[region]
		t, more := codes[number], parents[number].more
		if t == nil { // all values are 0: tables 0, 4 and 14
			for ; at < limit; at++ {
				to[at] = 0
			}
			continue
		}
		for ; at < limit && b.at < end; at += 2 {
			v := next(b, t)
			to[at] = large(b, v>>4, more)
			to[at+1] = large(b, v&15, more)
		}
	}
	for t := codes[32+g.quads]; at <= lines-4 && b.at < end; at += 4 {
		v := next(b, t)
		for i := range 4 {
			to[at+i] = 0
			if v>>(3-i)&1 == 1 {
				to[at+i] = float32(1 - 2*b.read(1))
			}
		}
		if b.at > end { // the last code is not of this granule
			break
		}
	}
	clear(to[at:])
	for at > 0 && to[at-1] == 0 {
		at--
	}
	g.used = at
	return nil
}

// large reads the rest of a large value.
func large(b *bitReader, v, more int) float32 {
	if v == 15 && more > 0 {
		v += b.read(more)
	}
	if v != 0 && b.read(1) == 1 {
		return -power[v]
	}
	return power[v]
}
