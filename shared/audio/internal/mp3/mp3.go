// Package mp3 decodes MP3 (ISO/IEC 11172-3 and 13818-3, layer III, and MPEG-2.5) into mono float32 samples, any part of
// a file at a time.
//
// Package github.com/hajimehoshi/go-mp3 decodes the files that it reads, to 16 bits, and package layer3 all others.
// This package finds the frames, gives the decoder those of a part and those before it on which it depends, and guards
// go-mp3, which was not made for damaged files.
//
//	h, err := mp3.ReadHeader(f, size)
//	...
//	var d mp3.Decoder // reuse it for the next file
//	err = d.Read(samples, f, h, 48000) // from sample 48000 on
package mp3

import (
	"fmt"
	"io"
	"slices"

	"github.com/xtts-host/xtts-host/shared/audio/internal/layer3"
	"github.com/xtts-host/xtts-host/shared/audio/internal/remark"
	"github.com/xtts-host/xtts-host/shared/audio/internal/tag"
)

// ErrUnsupported is wrapped by errors about files that are intact but not supported.
var ErrUnsupported = layer3.ErrUnsupported

// Header describes a file.
type Header struct {
	SampleRate int // Hz
	Channels   int // 1 or 2
	Frames     int // samples per channel, without those that the encoder added at both ends
	Remarks    remark.Set

	first   frame // the first one
	other   bool  // there is one that go-mp3 does not read
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
	s := scan{Reader: tag.Reader{File: r, Size: size}}
	at, err := s.Skip(0)
	if begin, late, fault := s.start(at); err == nil && fault != nil {
		err = fault
	} else if late {
		at, s.header.Remarks = begin, remark.Start
	}
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
		return Header{}, remark.Lost("no MP3 frame with audio")
	case h.Frames == 0:
		return Header{}, remark.Lost("the audio has no samples")
	default:
		h.offsets, h.sizes = slices.Clip(h.offsets), slices.Clip(h.sizes)
		return h, nil
	}
}

// scan collects the frames of a file.
type scan struct {
	tag.Reader
	header Header
	begin  int     // first frame of the current part
	info   encoder // of the current part
	free   int     // bytes of a frame of free bit rate, without padding
}

// next reads the header of the frame at an offset, or skips a tag, and returns the offset after it.
func (s *scan) next(at int64) (int64, error) {
	h := &s.header
	f, err := s.frame(at)
	if err != nil && len(h.offsets) > 0 {
		if end, ok, err := s.Trailer(at); ok || err != nil {
			return end, err
		}
		if s.isEnd(at) {
			h.Remarks |= remark.Junk
			return s.Size, nil
		}
	}
	if err != nil {
		return 0, fmt.Errorf("MP3 frame at byte %d: %w", at, err)
	}
	end := at + int64(f.size)
	if end > s.Size {
		if h.Remarks |= remark.Cut; len(h.offsets) > 0 {
			return s.Size, nil
		}
		return 0, remark.Lost("truncated: the MP3 frame at byte %d has %d bytes, the file has %d more",
			at, f.size, s.Size-at)
	}
	isFirst := h.first.size == 0
	if isFirst {
		h.first, h.SampleRate, h.Channels = f, f.rate, f.channels
	}
	if !f.like(h.first) {
		return 0, fmt.Errorf("MP3 frame at byte %d: %w: sample rate or channels change", at, ErrUnsupported)
	}
	b, err := s.Bytes(at, f.size)
	if err != nil {
		return 0, err
	}
	if info := parseTag(b, f); info.found && (isFirst || silent(b, f)) {
		err := s.endPart(at)
		s.info = info
		return end, err
	}
	h.offsets, h.sizes, h.other = append(h.offsets, at), append(h.sizes, uint16(f.size)), h.other || !f.old
	return end, nil
}

// frame reads the header of the frame at an offset.
func (s *scan) frame(at int64) (frame, error) {
	b, err := s.Bytes(at, headerSize)
	if err != nil {
		return frame{}, err
	}
	f, err := parseFrame(b)
	if err != nil || f.size > 0 {
		return f, err
	}
	if s.free == 0 {
		if s.free, err = s.findFree(at, f); err != nil {
			return frame{}, err
		}
	}
	f.size = s.free + f.padding
	return f, nil
}

// maxFree is the largest distance at which the frame after one of free bit rate is looked for: that of 640 kbit/s at
// 8,000 Hz.
const maxFree = 5760

// findFree returns the size of frames of free bit rate, without padding: the distance of the next headers of this kind.
func (s *scan) findFree(at int64, f frame) (int, error) {
	same := func(at int64) (frame, bool) {
		b, err := s.Bytes(at, headerSize)
		if err != nil {
			return frame{}, false
		}
		next, err := parseFrame(b)
		return next, err == nil && next.size == 0 && next.like(f) && next.version == f.version
	}
	for n := f.main; n <= maxFree && at+int64(n) < s.Size; n++ {
		next, ok := same(at + int64(n))
		if !ok {
			continue
		}
		if _, ok = same(at + int64(n+n-f.padding+next.padding)); ok {
			return n - f.padding, nil
		}
	}
	return 0, fmt.Errorf("%w: free bit rate without a second and a third frame", ErrUnsupported)
}

// maxTries bounds the seeks for a frame behind the recording.
const maxTries = 10_000

// isEnd reports whether the recording has ended at an offset: it is the larger part of the file, and no two frames
// follow.
func (s *scan) isEnd(at int64) bool {
	if at < s.Size-at {
		return false
	}
	for tries := 0; at < s.Size-headerSize; at++ {
		b, err := s.Bytes(at, headerSize)
		if err != nil {
			return false
		}
		if b[0] != 0xFF {
			continue
		}
		f, err := parseFrame(b)
		if err != nil || f.size == 0 || !f.like(s.header.first) || at+int64(f.size) > s.Size-headerSize {
			continue
		}
		if tries++; tries == maxTries {
			return false
		}
		if next, err := s.frame(at + int64(f.size)); err == nil && next.like(f) {
			return false
		}
	}
	return true
}

// decoderDelay is how many samples later a decoder is than the encoder counts (LAME's technical FAQ).
const decoderDelay = 529

// endPart completes the current part. end is the offset after its last frame.
func (s *scan) endPart(end int64) error {
	h := &s.header
	p := part{begin: s.begin, end: len(h.offsets)}
	n := p.end - p.begin
	if n < s.info.frames/2 {
		return remark.Truncated("truncated: %d MP3 frames up to byte %d, its tag declares %d", n, end, s.info.frames)
	}
	if n == 0 {
		return nil
	}
	p.samples = n * h.first.samples
	if s.info.gapless {
		p.skip = s.info.delay + decoderDelay
		p.samples -= max(p.skip, s.info.delay+s.info.padding)
	}
	if n < s.info.frames { // what the encoder added at the end is missing first
		h.Remarks |= remark.Cut
		missing := (s.info.frames - n) * h.first.samples
		p.samples = min(n*h.first.samples-p.skip, p.samples+missing)
	}
	if p.samples > 0 {
		h.parts = append(h.parts, p)
		h.Frames += p.samples
	}
	s.begin = p.end
	return nil
}
