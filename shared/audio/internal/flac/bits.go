package flac

import (
	"encoding/binary"
	"errors"
	"io"
	"math/bits"

	"github.com/xtts-host/xtts-host/shared/audio/internal/exact"
)

// errEnd means that the file ended within a frame.
var errEnd = errors.New("the file ends inside a frame")

// chunk is the number of bytes that are read from the file at a time.
const chunk = 64 << 10

// bitReader reads big-endian bits of a file. The first error is kept; after it, all bits are 0.
type bitReader struct {
	src  io.ReaderAt
	size int64 // of the file
	next int64 // offset in the file after buf
	buf  []byte
	at   int    // bytes of buf that are in acc
	acc  uint64 // the next bits, from the top
	n    uint   // how many of them are valid
	crc  uint16 // checksum of the bytes read since start, up to buf[crcAt]
	from int    // see crc
	err  error
}

// seek sets the offset in the file and clears the error.
func (b *bitReader) seek(at int64) {
	b.next, b.buf, b.at, b.acc, b.n, b.crc, b.from, b.err = at, b.buf[:0], 0, 0, 0, 0, 0, nil
}

// used returns the index in buf after the last byte that was read, even partly.
func (b *bitReader) used() int { return b.at - int(b.n/8) }

// offset returns the offset in the file after the last byte that was read.
func (b *bitReader) offset() int64 { return b.next - int64(len(b.buf)-b.used()) }

// startCRC starts a checksum with the next byte. sumCRC returns it.
func (b *bitReader) startCRC() { b.crc, b.from = 0, b.used() }

func (b *bitReader) sumCRC() uint16 {
	b.crc = crc16(b.crc, b.buf[b.from:b.used()])
	b.from = b.used()
	return b.crc
}

// fill makes at least 57 bits available, or all that are left.
func (b *bitReader) fill() {
	if len(b.buf)-b.at < 8 && b.next < b.size {
		b.load()
	}
	if len(b.buf)-b.at >= 8 {
		// Bits beyond n are set too; the next fill sets the same bits again.
		b.acc |= binary.BigEndian.Uint64(b.buf[b.at:]) >> b.n
		b.at += int(63-b.n) >> 3
		b.n |= 56
		return
	}
	for b.n <= 56 && b.at < len(b.buf) {
		b.acc |= uint64(b.buf[b.at]) << (56 - b.n)
		b.at++
		b.n += 8
	}
}

// load reads the next chunk and keeps the unused bytes.
func (b *bitReader) load() {
	if b.err != nil {
		return
	}
	used := b.used()
	b.sumCRC()
	kept := copy(b.buf, b.buf[used:])
	b.at, b.from = b.at-used, 0
	n := int(min(b.size-b.next, chunk))
	if cap(b.buf) < kept+n {
		grown := make([]byte, kept, chunk+maxHeader) // no caller keeps more
		copy(grown, b.buf)
		b.buf = grown
	}
	b.buf = b.buf[:kept+n]
	if err := exact.ReadAt(b.src, b.buf[kept:], b.next); err != nil {
		b.err, b.buf = err, b.buf[:kept]
		return
	}
	b.next += int64(n)
}

// read returns the next n bits, at most 32.
func (b *bitReader) read(n uint) uint32 {
	if b.n < n {
		if b.fill(); b.n < n {
			b.fail()
			return 0
		}
	}
	v := uint32(b.acc >> 32 >> (32 - n))
	b.acc <<= n
	b.n -= n
	return v
}

func (b *bitReader) fail() {
	if b.err == nil {
		b.err = errEnd
	}
	b.acc, b.n, b.at = 0, 0, len(b.buf)
}

// signed returns the next n bits, 1 to 32, as a two's complement number.
func (b *bitReader) signed(n uint) int32 { return int32(b.read(n)<<(32-n)) >> (32 - n) }

// unary returns the number of 0 bits before the next 1.
func (b *bitReader) unary() uint64 {
	zeros := uint64(0)
	for {
		if z := uint(bits.LeadingZeros64(b.acc)); z < b.n {
			b.acc <<= z + 1
			b.n -= z + 1
			return zeros + uint64(z)
		}
		zeros += uint64(b.n)
		b.acc, b.n = 0, 0
		if b.fill(); b.n == 0 {
			b.fail()
			return 0
		}
	}
}

// align skips to the next whole byte.
func (b *bitReader) align() { b.read(b.n % 8) }

// rice fills dst with numbers in Rice code of k bits (RFC 9639, section 9.2.7): the quotient in unary, k bits of
// remainder, the sign in the lowest bit. It returns false if a number exceeds 32 bits.
func (b *bitReader) rice(dst []int32, k uint) bool {
	for i := range dst {
		if b.n < 57 {
			b.fill()
		}
		var u uint64
		if z := uint(bits.LeadingZeros64(b.acc)); z+1+k <= b.n {
			u = uint64(z)<<k | b.acc<<(z+1)>>(64-k)
			b.acc <<= z + 1 + k
			b.n -= z + 1 + k
		} else {
			u = b.unary()<<k | uint64(b.read(k))
			if b.err != nil {
				return true
			}
		}
		if u > 1<<32-1 {
			return false
		}
		dst[i] = int32(u>>1) ^ -int32(u&1)
	}
	return true
}

// table returns the CRC of each byte, most significant bit first, for a polynomial in the upper bits of T.
func table[T uint8 | uint16](poly T, width uint) (t [256]T) {
	for i := range t {
		c := T(i) << (width - 8)
		for range 8 {
			if top := c >> (width - 1); top == 1 {
				c = c<<1 ^ poly
			} else {
				c <<= 1
			}
		}
		t[i] = c
	}
	return t
}

// The polynomials are x^8+x^2+x+1 for frame headers and x^16+x^15+x^2+1 for frames (RFC 9639, sections 9.1.8 and 9.3).
var (
	table8  = table[uint8](0x07, 8)
	table16 = table[uint16](0x8005, 16)
)

func crc8(b []byte) uint8 {
	c := uint8(0)
	for _, v := range b {
		c = table8[c^v]
	}
	return c
}

func crc16(c uint16, b []byte) uint16 {
	for _, v := range b {
		c = c<<8 ^ table16[uint8(c>>8)^v]
	}
	return c
}
