package layer3

import "encoding/binary"

// slack is how many bytes may be looked at after the data.
const slack = 8

// bitReader reads bits, the most significant first. data ends with slack zeros; reading beyond them gives zeros.
type bitReader struct {
	data []byte
	at   int // bits
}

// peek returns the next 32 bits, or more exactly at least the first 25 of them.
func (b *bitReader) peek() uint32 {
	i := b.at >> 3
	if i > len(b.data)-4 {
		return 0
	}
	return binary.BigEndian.Uint32(b.data[i:]) << (b.at & 7)
}

// read returns the next n bits, at most 25.
func (b *bitReader) read(n int) int {
	v := b.peek()
	b.at += n
	return int(v >> (32 - uint(n)) & (1<<uint(n) - 1))
}
