// Package vorbis decodes Ogg Vorbis into mono float32 samples, any part of a file at a time.
//
// Package github.com/jfreymuth/vorbis decodes the packets. This package reads the pages, finds the packets of a part,
// and guards the decoder: it was not made for damaged headers, so they are checked before it sees them.
//
//	s, err := ogg.Open(f, size)
//	...
//	h, err := vorbis.ReadHeader(s)
//	...
//	var d vorbis.Decoder // reuse it for the next file
//	err = d.Read(samples, h, 48000) // from sample 48000 on
package vorbis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/shared/audio/internal/ogg"
)

// ErrUnsupported is wrapped by errors about files that are intact but not supported.
var ErrUnsupported = errors.New("not a supported kind of Vorbis")

// mark begins the first packet of a Vorbis stream.
const mark = "\x01vorbis"

// Limits of a stream. The first two are those of the format. More channels have no order in it.
const (
	minBlock    = 64
	maxBlock    = 8192
	maxChannels = 8
)

// Header describes a file.
type Header struct {
	SampleRate int // Hz
	Channels   int // 1 to 8
	Frames     int // samples per channel

	stream *ogg.Stream
}

// Is reports whether the stream is one of Vorbis.
func Is(s *ogg.Stream) bool { return strings.HasPrefix(string(s.First), mark) }

// ReadHeader reads the first packet of a stream. The error does not name the file.
func ReadHeader(s *ogg.Stream) (Header, error) {
	b := s.First
	if !Is(s) || len(b) < 30 {
		return Header{}, fmt.Errorf("damaged: %d bytes are no header of Vorbis", len(b))
	}
	le := binary.LittleEndian
	h := Header{SampleRate: int(le.Uint32(b[12:])), Channels: int(b[11]), stream: s}
	short, long := 1<<(b[28]&15), 1<<(b[28]>>4)
	switch {
	case le.Uint32(b[7:]) != 0:
		return Header{}, fmt.Errorf("%w: version %d", ErrUnsupported, le.Uint32(b[7:]))
	case h.Channels == 0 || short < minBlock || short > long || long > maxBlock || b[29]&1 == 0:
		return Header{}, fmt.Errorf("damaged header: %d channels, blocks of %d and %d samples", h.Channels, short, long)
	case h.Channels > maxChannels:
		return Header{}, fmt.Errorf("%w: %d channels", ErrUnsupported, h.Channels)
	case s.End > s.Bytes()*maxBlock:
		return Header{}, fmt.Errorf("damaged: %d samples in %d bytes", s.End, s.Bytes())
	}
	h.Frames = int(s.End)
	return h, nil
}
