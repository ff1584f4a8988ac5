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

	"github.com/xtts-host/xtts-host/shared/regular"
)

// ErrUnsupported is wrapped by errors about files that are intact but not supported.
var ErrUnsupported = errors.New("not a supported kind of MP3")

// Header describes a file.
type Header struct {
	SampleRate int // Hz
	Channels   int // 1 or 2
	Frames     int // samples per channel, without those that the encoder added at both ends

	first   frame   // the first one
	skip    int     // samples before the first one of the recording
	offsets []int64 // of the frames, and the end of the last one
}

// ReadHeader reads the headers of all frames of a file of size bytes: no other number of samples is reliable. The error
// does not name the file.
func ReadHeader(r io.ReaderAt, size int64) (Header, error) {
	f := window{r: r, size: size}
	at, err := f.skipTags()
	if err != nil {
		return Header{}, err
	}
	var h Header
	var info tag
	for at < size {
		b, err := f.bytes(at, headerSize)
		if err != nil {
			return Header{}, err
		}
		next, err := parseFrame(b)
		if err != nil && len(h.offsets) > 0 && f.trailer(at) {
			break
		}
		if err != nil {
			return Header{}, fmt.Errorf("MP3 frame at byte %d: %w", at, err)
		}
		if at+int64(next.size) > size {
			return Header{}, fmt.Errorf("truncated: the MP3 frame at byte %d has %d bytes, the file has %d more", at, next.size, size-at)
		}
		if h.first.size == 0 {
			h.first = next
			if b, err = f.bytes(at, next.size); err != nil {
				return Header{}, err
			}
			if info = parseTag(b, next); info.found {
				at += int64(next.size)
				continue
			}
		}
		if !next.like(h.first) {
			return Header{}, fmt.Errorf("MP3 frame at byte %d: %w: sample rate or channels change", at, ErrUnsupported)
		}
		h.offsets = append(h.offsets, at)
		at += int64(next.size)
	}
	return h.finish(info, at)
}

// decoderDelay is how many samples a decoder lags behind what the encoder counts (LAME's technical FAQ).
const decoderDelay = 529

// finish computes the numbers of samples. end is the offset after the last frame.
func (h Header) finish(info tag, end int64) (Header, error) {
	n := len(h.offsets)
	if n == 0 {
		return Header{}, errors.New("no MP3 frame with audio")
	}
	if n < info.frames {
		return Header{}, fmt.Errorf("truncated: %d MP3 frames up to byte %d, its tag declares %d", n, end, info.frames)
	}
	h.offsets = append(slices.Clip(h.offsets), end)
	h.SampleRate, h.Channels = h.first.rate, h.first.channels
	h.Frames = n * h.first.samples
	if info.gapless {
		h.skip = info.delay + decoderDelay
		h.Frames = min(h.Frames-info.delay-info.padding, h.Frames-h.skip)
	}
	if h.Frames <= 0 {
		return Header{}, errors.New("the audio has no samples")
	}
	return h, nil
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
		if err := regular.ReadAt(w.r, w.buf, at); err != nil {
			return nil, err
		}
	}
	return w.buf[at-w.at:][:n], nil
}
