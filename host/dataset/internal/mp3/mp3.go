// Package mp3 decodes MP3 (ISO/IEC 11172-3 and 13818-3, layer III) into mono float32 samples, any part of a file at a
// time.
//
// Package github.com/hajimehoshi/go-mp3 decodes the frames, to 16 bits. This package finds them, gives the decoder the
// frames of a part and those before it on which it depends, and guards the decoder, which was not made for damaged
// files.
//
//	h, err := mp3.ReadHeader(f, size)
//	...
//	var d mp3.Decoder // reuse it for the next file
//	err = d.Read(samples, f, h, 48000) // from sample 48000 on
package mp3

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/xtts-host/xtts-host/shared/files"
)

// ErrUnsupported is wrapped by errors about files that are intact but not supported.
var ErrUnsupported = errors.New("not a supported kind of MP3")

// Header describes a file.
type Header struct {
	SampleRate int // Hz
	Channels   int // 1 or 2
	Frames     int // samples per channel, without those that the encoder added at both ends

	first   frame // the first one
	parts   []part
	offsets []int64 // of the frames
	sizes   []uint16
}

// Bytes returns the memory that the header takes.
func (h *Header) Bytes() int { return 8*cap(h.offsets) + 2*cap(h.sizes) }

// part is one of the recordings of a file that was joined from several. The first frame of each, with the tag of its
// encoder, shows where it begins.
type part struct {
	begin, end int // frames
	skip       int // samples before the first one of the recording
	samples    int // of the recording
}

// ReadHeader reads the headers of all frames of a file of size bytes: no other number of samples is reliable. The error
// does not name the file.
func ReadHeader(r io.ReaderAt, size int64) (Header, error) {
	s := scan{window: window{r: r, size: size}}
	at, err := s.skipTags(0)
	for err == nil && at < size {
		begin := at
		if at, err = s.next(begin); err == nil && at <= begin {
			err = fmt.Errorf("neither an MP3 frame nor a tag ends after byte %d", begin)
		}
	}
	if err == nil {
		err = s.endPart(at)
	}
	switch h := s.header; {
	case err != nil:
		return Header{}, err
	case len(h.offsets) == 0:
		return Header{}, errors.New("no MP3 frame with audio")
	case h.Frames == 0:
		return Header{}, errors.New("the audio has no samples")
	default:
		h.offsets, h.sizes = slices.Clip(h.offsets), slices.Clip(h.sizes)
		return h, nil
	}
}

// scan collects the frames of a file.
type scan struct {
	window
	header Header
	begin  int // first frame of the current part
	info   tag // of the current part
}

// next reads the header of the frame at an offset, or skips a tag, and returns the offset after it.
func (s *scan) next(at int64) (int64, error) {
	h := &s.header
	b, err := s.bytes(at, headerSize)
	if err != nil {
		return 0, err
	}
	f, err := parseFrame(b)
	if err != nil && len(h.offsets) > 0 {
		if end, ok, err := s.skipTrailer(at); ok || err != nil {
			return end, err
		}
	}
	if err != nil {
		return 0, fmt.Errorf("MP3 frame at byte %d: %w", at, err)
	}
	end := at + int64(f.size)
	if end > s.size {
		return 0, fmt.Errorf("truncated: the MP3 frame at byte %d has %d bytes, the file has %d more", at, f.size, s.size-at)
	}
	isFirst := h.first.size == 0
	if isFirst {
		h.first, h.SampleRate, h.Channels = f, f.rate, f.channels
	}
	if !f.like(h.first) {
		return 0, fmt.Errorf("MP3 frame at byte %d: %w: sample rate or channels change", at, ErrUnsupported)
	}
	if b, err = s.bytes(at, f.size); err != nil {
		return 0, err
	}
	if info := parseTag(b, f); info.found && (isFirst || silent(b, f)) {
		err := s.endPart(at)
		s.info = info
		return end, err
	}
	h.offsets, h.sizes = append(h.offsets, at), append(h.sizes, uint16(f.size))
	return end, nil
}

// decoderDelay is how many samples later a decoder is than the encoder counts (LAME's technical FAQ).
const decoderDelay = 529

// endPart completes the current part. end is the offset after its last frame.
func (s *scan) endPart(end int64) error {
	h := &s.header
	p := part{begin: s.begin, end: len(h.offsets)}
	n := p.end - p.begin
	if n < s.info.frames {
		return fmt.Errorf("truncated: %d MP3 frames up to byte %d, its tag declares %d", n, end, s.info.frames)
	}
	if n == 0 {
		return nil
	}
	p.samples = n * h.first.samples
	if s.info.gapless {
		p.skip = s.info.delay + decoderDelay
		p.samples = min(p.samples-s.info.delay-s.info.padding, p.samples-p.skip)
	}
	if p.samples > 0 {
		h.parts = append(h.parts, p)
		h.Frames += p.samples
	}
	s.begin = p.end
	return nil
}

// window reads a file in blocks: a system call per frame would take most of the time.
type window struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	at   int64
}

const block = 64 << 10

// bytes returns n bytes at an offset, or those up to the end of the file.
func (w *window) bytes(at int64, n int) ([]byte, error) {
	n = int(min(int64(n), w.size-at))
	if at < w.at || at+int64(n) > w.at+int64(len(w.buf)) {
		length := int(min(block, w.size-at))
		if cap(w.buf) < length {
			w.buf = make([]byte, length)
		}
		w.buf, w.at = w.buf[:length], at
		if err := files.ReadAt(w.r, w.buf, at); err != nil {
			return nil, err
		}
	}
	return w.buf[at-w.at:][:n], nil
}
