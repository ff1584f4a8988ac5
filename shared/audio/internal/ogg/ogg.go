// Package ogg reads the packets of an Ogg file (RFC 3533) that holds one stream.
//
// Files may come from untrusted sources: pages are checked by their checksums and numbers, every loop ends at the end
// of the file, and the longest packet is limited. Files with several streams, side by side or one after another, are
// refused.
//
//	s, err := ogg.Open(f, size)
//	...
//	p := s.Packets()
//	for {
//		packet, err := p.Next()
//		...
//	}
package ogg

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
	"github.com/xtts-host/xtts-host/shared/audio/internal/tag"
)

// ErrUnsupported is wrapped by errors about files that are intact but not supported.
var ErrUnsupported = errors.New("not a supported kind of Ogg")

// Stream is the stream of a file. It is safe for concurrent use.
type Stream struct {
	// First is the first packet, which names the codec.
	First []byte
	// End is the granule position of the last whole page: the end of the stream in units of the codec.
	End int64
	// Remarks say whether that page does not end the stream, as it should, and whether other bytes follow it.
	Remarks remark.Set

	r      io.ReaderAt
	size   int64
	serial uint32
	limit  int // bytes of a packet
}

// Open reads the first and the last pages of a file of size bytes. The error does not name the file.
func Open(r io.ReaderAt, size int64) (*Stream, error) {
	s := &Stream{r: r, size: size, limit: maxPacket}
	var p page
	if err := p.read(r, size, 0); err != nil {
		return nil, err
	}
	if p.flags&first == 0 {
		return nil, errors.New("damaged: the first page does not begin a stream")
	}
	s.serial = p.serial
	if len(p.packets) == 0 {
		return nil, fmt.Errorf("%w: its first packet is longer than a page", ErrUnsupported)
	}
	s.First = bytes.Clone(p.packets[0])
	if second := p.end(); second < size {
		if err := p.header(r, size, second); err != nil {
			return nil, err
		}
		if p.flags&first != 0 {
			return nil, fmt.Errorf("page at byte %d: %w: several streams side by side, such as a film",
				second, ErrUnsupported)
		}
	}
	return s, s.findEnd()
}

// tail is how many bytes at the end of a file are searched for its last page: the second number holds two pages of the
// largest size.
var tail = [...]int64{8 << 10, 2 * maxPage}

// findEnd sets End. If the last whole page does not end the stream, the rest of it is missing, and the stream ends
// there.
func (s *Stream) findEnd() error {
	var err error
	for _, n := range tail {
		n = min(n, s.size)
		b := make([]byte, n)
		if got, rerr := s.r.ReadAt(b, s.size-n); got < len(b) {
			return fmt.Errorf("%d of the last %d bytes could be read: %w", got, n, rerr)
		}
		if err = s.searchEnd(b, s.size-n); err == nil {
			return nil
		}
	}
	return err
}

// searchEnd looks for the last pages in b, the end of the file from an offset on.
func (s *Stream) searchEnd(b []byte, offset int64) error {
	found := false
	for i := len(b) - minPage; i >= 0; i-- {
		if string(b[i:i+4]) != capture {
			continue
		}
		var p page
		if err := p.parse(b[i:], offset+int64(i)); err != nil {
			continue // a part of a packet, or the start of a page of which the rest is missing
		}
		if p.serial != s.serial {
			return chained(p.offset)
		}
		if p.flags&last == 0 && !found {
			var after page // whole, it is damaged, not cut
			if after.header(s.r, s.size, p.end()) == nil {
				return after.read(s.r, s.size, p.end())
			}
			s.Remarks |= remark.Cut
			s.size = p.end()
		} else if !found && !isTag(b[int(p.end()-offset):]) {
			s.Remarks |= remark.Junk
		}
		found = true
		if p.granule >= 0 {
			s.End = p.granule
			return nil
		}
	}
	return remark.Truncated("truncated or damaged: no page ends the stream in the last %d bytes", len(b))
}

// isTag reports whether what follows the last page is nothing, a tag or zeros.
func isTag(b []byte) bool { return tag.Begins(b) || len(bytes.Trim(b, "\x00")) == 0 }

func chained(offset int64) error {
	return fmt.Errorf("page at byte %d: %w: several streams one after another", offset, ErrUnsupported)
}

// CheckPages reads the headers of all pages: Open and Packets do not find another stream in the middle of the file, or
// one with the same serial number after the end of the first.
func (s *Stream) CheckPages() error {
	var p page
	for at := int64(0); at < s.size; at = p.end() {
		if p.flags&last != 0 {
			var b [len(capture)]byte
			if n, err := s.r.ReadAt(b[:], at); err != nil && err != io.EOF {
				return err
			} else if string(b[:n]) == capture {
				return chained(at)
			}
			return nil // other bytes after the end are not of the stream
		}
		if err := p.header(s.r, s.size, at); err != nil {
			return err
		}
		if err := s.owns(&p); err != nil {
			return err
		}
		if at > 0 && p.flags&first != 0 {
			return chained(at)
		}
	}
	return nil
}

// owns refuses a page of another stream.
func (s *Stream) owns(p *page) error {
	if p.serial != s.serial {
		return fmt.Errorf("page at byte %d: %w: several streams", p.offset, ErrUnsupported)
	}
	return nil
}

// Bytes returns the size of the file.
func (s *Stream) Bytes() int64 { return s.size }
