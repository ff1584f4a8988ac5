// Package wav reads the header of a WAV file and says where its samples are.
//
// It accepts 16-bit PCM (format 1, or WAVE_FORMAT_EXTENSIBLE with the PCM sub-format) and names whatever else it
// finds. Headers come from strangers, so every declared size is compared with the file's real one before anything is
// believed, and nothing is allocated by a declared size.
//
//	h, err := wav.ReadHeader(f, size)
//	...
//	f.ReadAt(pcm, h.Offset+int64(frame*h.FrameSize()))
package wav

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Limits of what is believed. A rate outside them is a damaged header rather than a recording, and would ask for a
// resampling filter of any size.
const (
	MinRate     = 4000
	MaxRate     = 384000
	MaxChannels = 64

	maxChunks = 1000 // before the samples; a file of empty chunks is not walked to its end
)

// Format codes of the fmt chunk (RFC 2361; Microsoft, mmreg.h).
const (
	formatPCM        = 1
	formatFloat      = 3
	formatExtensible = 0xFFFE
)

// Header describes the samples of a file: interleaved, 16-bit signed, little-endian.
type Header struct {
	SampleRate int   // Hz
	Channels   int   // 1 or more
	Frames     int   // samples per channel
	Offset     int64 // of the first sample, in bytes from the start of the file
}

// FrameSize returns the bytes of one sample of all channels.
func (h Header) FrameSize() int { return 2 * h.Channels }

// ReadHeader walks the chunks of a file of size bytes up to its samples. The error says what is wrong in terms of
// the file's bytes; it does not name the file.
func ReadHeader(r io.ReaderAt, size int64) (Header, error) {
	if size < 12 {
		return Header{}, fmt.Errorf("not a WAV file: only %d bytes", size)
	}
	f := file{r: r}
	if err := f.start(size); err != nil {
		return Header{}, err
	}
	var b [40]byte // the longest chunk that is looked into
	if err := f.read(b[:12], 0); err != nil {
		return Header{}, err
	}
	if string(b[:4]) != "RIFF" || string(b[8:12]) != "WAVE" {
		return Header{}, errors.New("not a WAV file: no RIFF/WAVE mark")
	}
	var h Header
	at := int64(12)
	for range maxChunks {
		if at+8 > size {
			return Header{}, fmt.Errorf("no data chunk in %d bytes", size)
		}
		if err := f.read(b[:8], at); err != nil {
			return Header{}, err
		}
		id, n := string(b[:4]), int64(binary.LittleEndian.Uint32(b[4:]))
		at += 8
		if n > size-at {
			return Header{}, fmt.Errorf("truncated: the %q chunk declares %d bytes, the file has %d", id, n, size-at)
		}
		switch id {
		case "fmt ":
			format := b[:min(n, int64(len(b)))]
			if err := f.read(format, at); err != nil {
				return Header{}, err
			}
			var err error
			if h, err = parseFormat(format); err != nil {
				return Header{}, err
			}
		case "data":
			if h.Channels == 0 {
				return Header{}, errors.New("the data chunk stands before the fmt chunk")
			}
			if n%int64(h.FrameSize()) != 0 {
				return Header{}, fmt.Errorf("data chunk of %d bytes does not hold whole frames of %d bytes", n, h.FrameSize())
			}
			h.Offset, h.Frames = at, int(n/int64(h.FrameSize()))
			return h, nil
		}
		at += n + n%2 // chunks are padded to an even size
	}
	return Header{}, fmt.Errorf("no data chunk among the first %d chunks", maxChunks)
}

func parseFormat(f []byte) (Header, error) {
	if len(f) < 16 {
		return Header{}, fmt.Errorf("fmt chunk of %d bytes, 16 are needed", len(f))
	}
	u16 := func(at int) int { return int(binary.LittleEndian.Uint16(f[at:])) }
	code, bits := u16(0), u16(14)
	if code == formatExtensible && len(f) >= 26 {
		code = u16(24) // the sub-format's GUID starts with the plain code
	}
	switch {
	case code == formatFloat:
		return Header{}, fmt.Errorf("%d-bit float samples; only 16-bit PCM is read", bits)
	case code != formatPCM:
		return Header{}, fmt.Errorf("compressed samples (format %#04x); only 16-bit PCM is read", code)
	case bits != 16:
		return Header{}, fmt.Errorf("%d-bit PCM samples; only 16-bit PCM is read", bits)
	}
	h := Header{SampleRate: int(binary.LittleEndian.Uint32(f[4:])), Channels: u16(2)}
	switch {
	case h.Channels < 1 || h.Channels > MaxChannels:
		return Header{}, fmt.Errorf("%d channels", h.Channels)
	case h.SampleRate < MinRate || h.SampleRate > MaxRate:
		return Header{}, fmt.Errorf("sample rate of %d Hz is outside %d..%d", h.SampleRate, MinRate, MaxRate)
	case u16(12) != h.FrameSize():
		return Header{}, fmt.Errorf("frames of %d bytes do not fit %d channels of 16 bits", u16(12), h.Channels)
	}
	return h, nil
}

// file reads its first bytes once: most headers are in them, and a system call for each chunk would be most of the time
// that indexing a large data set takes.
type file struct {
	r    io.ReaderAt
	head [256]byte
	n    int // of head
}

func (f *file) start(size int64) error {
	f.n = int(min(size, int64(len(f.head))))
	return readAt(f.r, f.head[:f.n], 0)
}

func (f *file) read(b []byte, at int64) error {
	if end := at + int64(len(b)); end <= int64(f.n) {
		copy(b, f.head[at:end])
		return nil
	}
	return readAt(f.r, b, at)
}

func readAt(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil // ReadAt may give io.EOF with the last bytes
	}
	return fmt.Errorf("reading %d bytes at %d: got %d: %w", len(b), at, n, err)
}
