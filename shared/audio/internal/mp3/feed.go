package mp3

import (
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/shared/audio/internal/exact"
)

// feed gives the decoder frames one after another. The main data of a frame may begin in frames before it. So the first
// frames are there only for their main data, and in a file that was cut out of another, the data of the first frames is
// missing: the feed makes both silent.
type feed struct {
	r      io.ReaderAt
	h      Header
	index  int // of the next frame
	end    int // after the last frame
	decode int // the first frame that is to be decoded

	err    error
	offset int64 // of the current frame
	buf    []byte
	rest   []byte // of the current frame
	have   int    // bytes of main data that the decoder keeps
	// started says that a frame had its main data.
	started bool
}

// newFeed returns a feed for the samples of the frame target and those after it in a part of the file.
func newFeed(r io.ReaderAt, h Header, p part, target int) *feed {
	f := &feed{r: r, h: h, end: p.end, decode: max(p.begin, target-warmUp)}
	f.index = f.decode
	for data := 0; f.index > p.begin && data < h.first.reservoir(); f.index-- {
		// The checksum of 2 bytes may be absent or not: assume it.
		data += max(0, int(h.sizes[f.index-1])-h.first.main-2)
	}
	return f
}

func (f *feed) Read(b []byte) (int, error) {
	if len(f.rest) == 0 {
		if f.err == nil && f.index == f.end {
			return 0, io.EOF
		}
		if f.err == nil {
			f.err = f.next()
		}
		if f.err != nil {
			return 0, f.err
		}
	}
	n := copy(b, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

// next reads a frame.
func (f *feed) next() error {
	f.offset = f.h.offsets[f.index]
	n := int(f.h.sizes[f.index])
	if cap(f.buf) < n {
		f.buf = make([]byte, max(n, 2048))
	}
	f.rest = f.buf[:n]
	if err := exact.ReadAt(f.r, f.rest, f.offset); err != nil {
		return err
	}
	head, err := parseFrame(f.rest)
	if err != nil || head.size > 0 && head.size != n || head.main > n || !head.like(f.h.first) {
		return fmt.Errorf("MP3 frame at byte %d: it has changed since it was found", f.offset)
	}
	side := f.rest[head.side:head.main]
	begin := head.begin(f.rest)
	switch missing := begin > f.have; {
	case missing && f.started:
		return fmt.Errorf("MP3 frame at byte %d: damaged: its data begins %d bytes before it, the frames there have %d",
			f.offset, begin, f.have)
	case missing || f.index < f.decode:
		clear(side)
		begin = min(f.have, head.reservoir())
		if head.lower() {
			side[0] = byte(begin)
		} else {
			side[0], side[1] = byte(begin>>1), byte(begin<<7)
		}
	default:
		f.started = true
	}
	f.have = begin + n - head.main
	f.index++
	return nil
}
