package mp3

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/hajimehoshi/go-mp3"

	"github.com/xtts-host/xtts-host/shared/files"
)

// warmUp is how many frames before a sample a decoder must have decoded: a sample depends on the frequencies of three
// granules, and a frame of MPEG-2 is one granule.
const warmUp = 2

// Decoder reads samples. The zero value is ready for use. It reuses its buffers, so use one Decoder per goroutine.
type Decoder struct {
	pcm []byte // of one frame: two channels of 16 bits
}

// Read fills dst with the samples from, from+1, ... of a file: the mean of the channels, divided by 2^15. The file must
// have that many: from+len(dst) <= h.Frames. A part has the same bits as in the whole file.
func (d *Decoder) Read(dst []float32, r io.ReaderAt, h Header, from int) error {
	if from < 0 || from+len(dst) > h.Frames {
		return fmt.Errorf("samples %d to %d of %d were asked for", from, from+len(dst), h.Frames)
	}
	for _, p := range h.parts {
		if n := min(len(dst), p.samples-from); n > 0 {
			if err := d.read(dst[:n], r, h, p, from+p.skip); err != nil {
				return err
			}
			dst, from = dst[n:], from+n
		}
		from -= p.samples
	}
	return nil
}

// read reads samples of a part of the file, counted from its first frame.
func (d *Decoder) read(dst []float32, r io.ReaderAt, h Header, p part, from int) (err error) {
	f := newFeed(r, h, p, p.begin+from/h.first.samples)
	defer func() {
		// The decoder indexes its tables with what it reads.
		if r := recover(); r != nil {
			err = fmt.Errorf("MP3 frame at byte %d: damaged: %v", f.offset, r)
		}
		if f.err != nil {
			err = f.err
		}
	}()
	at := (f.index - p.begin) * h.first.samples
	dec, err := mp3.NewDecoder(f)
	if err != nil {
		return fmt.Errorf("MP3 frame at byte %d: %w", f.offset, err)
	}
	if d.pcm == nil {
		d.pcm = make([]byte, 4*1152)
	}
	pcm := d.pcm[:4*h.first.samples]
	for done := 0; done < len(dst); at += h.first.samples {
		if _, err := io.ReadFull(dec, pcm); err != nil {
			return fmt.Errorf("MP3 frame at byte %d: %w", f.offset, err)
		}
		if skip := from + done - at; skip < h.first.samples {
			part := dst[done:min(len(dst), done+h.first.samples-skip)]
			mean(part, pcm[4*skip:])
			done += len(part)
		}
	}
	return nil
}

// mean writes the mean of two channels. The decoder writes those of a mono file twice.
func mean(dst []float32, pcm []byte) {
	le := binary.LittleEndian
	for i := range dst {
		sum := int(int16(le.Uint16(pcm[4*i:]))) + int(int16(le.Uint16(pcm[4*i+2:])))
		dst[i] = float32(sum) / (1 << 16)
	}
}

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
	if err := files.ReadAt(f.r, f.rest, f.offset); err != nil {
		return err
	}
	head, err := parseFrame(f.rest)
	if err != nil || head.size != n || !head.like(f.h.first) {
		return fmt.Errorf("MP3 frame at byte %d: it has changed since it was found", f.offset)
	}
	side := f.rest[head.side:head.main]
	begin := int(side[0])
	if !head.lsf {
		begin = begin<<1 | int(side[1]>>7)
	}
	switch missing := begin > f.have; {
	case missing && f.started:
		return fmt.Errorf("MP3 frame at byte %d: damaged: its data begins %d bytes before it, the frames there have %d", f.offset, begin, f.have)
	case missing || f.index < f.decode:
		clear(side)
		begin = min(f.have, head.reservoir())
		if head.lsf {
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
