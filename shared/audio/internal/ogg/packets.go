package ogg

import (
	"fmt"
	"io"
)

// maxPacket limits the bytes of a packet. The longest are comments with pictures.
const maxPacket = 16 << 20

// Packets reads the packets of a stream one after another.
type Packets struct {
	s      *Stream
	page   page
	next   int64  // offset of the next page
	number uint32 // of the next page
	index  int    // of the next packet of the page
	joined []byte // a packet of several pages, while it is put together
	open   bool   // joined has the start of one
}

// Packets returns a reader that begins at the first packet.
func (s *Stream) Packets() *Packets { return &Packets{s: s} }

// Next returns the next packet. The bytes are valid until the next call. The error at the end is io.EOF.
func (p *Packets) Next() ([]byte, error) {
	for {
		if p.index < len(p.page.packets) {
			packet := p.page.packets[p.index]
			p.index++
			if p.index == 1 && p.open {
				p.joined, p.open = append(p.joined, packet...), false
				packet = p.joined
			}
			return packet, nil
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
}

// advance reads the next page.
func (p *Packets) advance() error {
	if p.next > 0 { // the rest of the page before
		if !p.open {
			p.joined = p.joined[:0]
		}
		p.joined = append(p.joined, p.page.rest...)
		p.open = p.open || len(p.page.rest) > 0
		if len(p.joined) > p.s.limit {
			return fmt.Errorf("page at byte %d: a packet of more than %d bytes", p.page.offset, p.s.limit)
		}
		if p.page.flags&last != 0 || p.next >= p.s.size {
			return io.EOF
		}
	}
	if err := p.page.read(p.s.r, p.s.size, p.next); err != nil {
		return err
	}
	if err := p.s.owns(&p.page); err != nil {
		return err
	}
	switch {
	case p.page.number != p.number:
		return fmt.Errorf("page at byte %d: damaged: it is number %d, expected %d", p.next, p.page.number, p.number)
	case p.open != (p.page.flags&continued != 0):
		return fmt.Errorf("page at byte %d: damaged: it does not continue the previous packet", p.next)
	}
	p.next, p.index = p.page.end(), 0
	p.number++
	return nil
}

// Page describes the page of the last packet: its offset, whether the packet is the last one that ends on it, and the
// granule position there.
func (p *Packets) Page() (offset int64, ends bool, granule int64) {
	return p.page.offset, p.index == len(p.page.packets), p.page.granule
}

// SeekTo goes to the last page with a granule position of at most target, so that Next returns the last packet of that
// page, and returns the position at the end of that packet. If no page after from, the offset of a page, has such a
// position and a whole packet, ok is false and nothing has changed.
func (p *Packets) SeekTo(from, target int64) (position int64, ok bool, err error) {
	var head page
	found := int64(-1)
	for at := from; at < p.s.size; at = head.end() {
		if err := head.header(p.s.r, p.s.size, at); err != nil {
			return 0, false, err
		}
		if err := p.s.owns(&head); err != nil {
			return 0, false, err
		}
		if head.granule > target || head.flags&last != 0 {
			break
		}
		if at > from && head.granule >= 0 && head.whole() {
			found = at
		}
	}
	if found < 0 {
		return 0, false, nil
	}
	if err := p.page.read(p.s.r, p.s.size, found); err != nil {
		return 0, false, err
	}
	p.next, p.number = p.page.end(), p.page.number+1
	p.index, p.open = len(p.page.packets)-1, false
	return p.page.granule, true, nil
}
