package ogg

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/exact"
	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
)

const (
	capture = "OggS"
	minPage = 27                      // bytes of a header without its table of segments
	maxPage = minPage + 255 + 255*255 // bytes of the largest page
)

// The flags of a page.
const (
	continued = 1 << iota
	first
	last
)

// page is one page. header leaves packets and rest empty.
type page struct {
	offset   int64
	flags    byte
	granule  int64 // position at the end of the last packet that ends here, -1 if none does
	serial   uint32
	number   uint32
	checksum uint32
	segments []byte

	packets [][]byte // that end here. The first is only the end of one if the page is continued
	rest    []byte   // the start of one that ends on a later page
	buf     []byte
}

// size returns the number of bytes of the page.
func (p *page) size() int64 {
	n := int64(minPage + len(p.segments))
	for _, s := range p.segments {
		n += int64(s)
	}
	return n
}

func (p *page) end() int64 { return p.offset + p.size() }

// whole reports whether the page has a packet that begins and ends on it, and so whether decoding can begin there.
func (p *page) whole() bool {
	ends := 0
	for _, s := range p.segments {
		if s < 255 {
			ends++
		}
	}
	return ends > 1 || ends == 1 && p.flags&continued == 0
}

// header reads the header of the page at an offset.
func (p *page) header(r io.ReaderAt, size, offset int64) error {
	if cap(p.buf) < maxPage {
		p.buf = make([]byte, maxPage)
	}
	b := p.buf[:min(minPage+255, max(0, size-offset))]
	if len(b) < minPage {
		return remark.Lost("truncated: no whole page at byte %d", offset)
	}
	if err := exact.ReadAt(r, b, offset); err != nil {
		return err
	}
	if err := p.fields(b, offset); err != nil {
		return err
	}
	if p.end() > size {
		return fmt.Errorf("truncated: the page at byte %d ends at %d, the file has %d bytes", offset, p.end(), size)
	}
	return nil
}

// read reads the page at an offset and checks it.
func (p *page) read(r io.ReaderAt, size, offset int64) error {
	if err := p.header(r, size, offset); err != nil {
		return err
	}
	b := p.buf[:p.size()]
	if err := exact.ReadAt(r, b, offset); err != nil {
		return err
	}
	return p.parse(b, offset)
}

// parse takes the page at the start of b apart.
func (p *page) parse(b []byte, offset int64) error {
	if err := p.fields(b, offset); err != nil {
		return err
	}
	if int64(len(b)) < p.size() {
		return errors.New("truncated")
	}
	b = b[:p.size()]
	if Checksum(b) != p.checksum {
		return fmt.Errorf("page at byte %d: damaged: its checksum is wrong", offset)
	}
	p.packets, p.rest = p.packets[:0], nil
	body, n := b[minPage+len(p.segments):], 0
	for _, s := range p.segments {
		n += int(s)
		if s < 255 {
			p.packets = append(p.packets, body[:n])
			body, n = body[n:], 0
		}
	}
	p.rest = body
	return nil
}

// fields reads the fields of a header.
func (p *page) fields(b []byte, offset int64) error {
	p.offset = offset
	if len(b) < minPage || len(b) < minPage+int(b[26]) {
		return fmt.Errorf("page at byte %d: truncated", offset)
	}
	if string(b[:4]) != capture || b[4] != 0 {
		return fmt.Errorf("damaged: no page begins at byte %d", offset)
	}
	le := binary.LittleEndian
	p.flags, p.granule = b[5], int64(le.Uint64(b[6:]))
	p.serial, p.number, p.checksum = le.Uint32(b[14:]), le.Uint32(b[18:]), le.Uint32(b[22:])
	p.segments = b[minPage : minPage+int(b[26])]
	return nil
}

// table is that of the checksum: the polynomial 0x04c11db7, most significant bit first.
var table = func() (t [256]uint32) {
	for i := range t {
		v := uint32(i) << 24
		for range 8 {
			if v&(1<<31) != 0 {
				v = v<<1 ^ 0x04c11db7
			} else {
				v <<= 1
			}
		}
		t[i] = v
	}
	return t
}()

// Checksum returns the checksum of a page, which counts its own four bytes as zeros.
func Checksum(page []byte) uint32 {
	sum := crc(0, page[:22])
	sum = crc(sum, []byte{0, 0, 0, 0})
	return crc(sum, page[26:])
}

func crc(sum uint32, b []byte) uint32 {
	for _, v := range b {
		sum = sum<<8 ^ table[byte(sum>>24)^v]
	}
	return sum
}
