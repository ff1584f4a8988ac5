// Package opus decodes Ogg Opus (RFC 6716, RFC 7845) into mono float32 samples at 48,000 Hz.
//
// Package github.com/pion/opus decodes the packets. This package reads the pages and guards the decoder. The state of a
// decoder depends on all packets before, so a part of a file is decoded from its beginning.
//
//	s, err := ogg.Open(f, size)
//	...
//	h, err := opus.ReadHeader(s)
//	...
//	var d opus.Decoder // reuse it for the next file
//	err = d.Read(samples, h, 48000) // from sample 48000 on
package opus

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/pion/opus"

	"github.com/xtts-host/xtts-host/shared/audio/internal/ogg"
)

// ErrUnsupported is wrapped by errors about files that are intact but not supported.
var ErrUnsupported = errors.New("not a supported kind of Opus")

// SampleRate is that of every file: the encoder's input may have had another one.
const SampleRate = 48000

const (
	mark      = "OpusHead"
	maxPacket = 5760 // samples: 120 ms
)

// Header describes a file.
type Header struct {
	Channels int // 1 or 2
	Frames   int // samples per channel

	skip   int     // samples before the first one of the recording
	gain   float64 // factor of all samples
	stream *ogg.Stream
}

// Is reports whether the stream is one of Opus.
func Is(s *ogg.Stream) bool { return strings.HasPrefix(string(s.First), mark) }

// ReadHeader reads the first packet of a stream (RFC 7845, section 5.1). The error does not name the file.
func ReadHeader(s *ogg.Stream) (Header, error) {
	b := s.First
	if !Is(s) || len(b) < 19 {
		return Header{}, fmt.Errorf("damaged: %d bytes are no header of Opus", len(b))
	}
	le := binary.LittleEndian
	h := Header{Channels: int(b[9]), skip: int(le.Uint16(b[10:])), stream: s}
	h.gain = math.Pow(10, float64(int16(le.Uint16(b[16:])))/(20*256))
	switch {
	case b[8]>>4 != 0:
		return Header{}, fmt.Errorf("%w: version %d", ErrUnsupported, b[8])
	case b[18] != 0:
		return Header{}, fmt.Errorf("%w: %d channels in mapping family %d", ErrUnsupported, b[9], b[18])
	case h.Channels < 1 || h.Channels > 2:
		return Header{}, fmt.Errorf("damaged header: %d channels", h.Channels)
	case s.End > s.Bytes()*maxPacket:
		return Header{}, fmt.Errorf("damaged: %d samples in %d bytes", s.End, s.Bytes())
	}
	h.Frames = max(0, int(s.End)-h.skip)
	return h, nil
}

// Decoder reads samples. The zero value is ready for use. It reuses its buffers, so use one Decoder per goroutine.
type Decoder struct {
	samples []float32 // of one packet, interleaved
}

// Read fills dst with the samples from, from+1, ... of a file: the mean of the channels. The file must have that many:
// from+len(dst) <= h.Frames. Samples may exceed -1..1 slightly.
func (d *Decoder) Read(dst []float32, h Header, from int) (err error) {
	if from < 0 || from+len(dst) > h.Frames {
		return fmt.Errorf("samples %d to %d of %d were asked for", from, from+len(dst), h.Frames)
	}
	p := h.stream.Packets()
	defer func() {
		// The decoder indexes its tables with what it reads.
		if r := recover(); r != nil {
			err = at(p, fmt.Errorf("damaged packet: %v", r))
		}
	}()
	for _, name := range []string{mark, "OpusTags"} {
		packet, err := p.Next()
		if err != nil && err != io.EOF {
			return err
		}
		if !strings.HasPrefix(string(packet), name) {
			return fmt.Errorf("damaged: no packet %s", name)
		}
	}
	dec, err := opus.NewDecoderWithOutput(SampleRate, h.Channels)
	if err != nil {
		return err
	}
	if d.samples == nil {
		d.samples = make([]float32, 2*maxPacket)
	}
	return d.read(dst, p, &dec, h, from+h.skip)
}

// read decodes packet after packet until dst is full. from counts from the first sample that is decoded.
func (d *Decoder) read(dst []float32, p *ogg.Packets, dec *opus.Decoder, h Header, from int) error {
	position := 0
	for done := 0; done < len(dst); {
		packet, err := p.Next()
		if err == io.EOF {
			return fmt.Errorf("damaged: the file ends after %d samples, expected %d", position, from+len(dst))
		}
		if err != nil {
			return err
		}
		n, err := dec.DecodeToFloat32(packet, d.samples)
		if err != nil {
			return at(p, err)
		}
		if skip := from + done - position; skip < n {
			part := dst[done:min(len(dst), done+n-skip)]
			if err := mean(part, d.samples[skip*h.Channels:], h); err != nil {
				return at(p, err)
			}
			done += len(part)
		}
		position += n
		if _, ends, granule := p.Page(); ends && done < len(dst) && granule != int64(position) {
			return at(p,
				fmt.Errorf("%w: it ends with sample %d, but %d were decoded", ErrUnsupported, granule, position))
		}
	}
	return nil
}

// at adds the place of the last packet to an error.
func at(p *ogg.Packets, err error) error {
	offset, _, _ := p.Page()
	return fmt.Errorf("page of Opus at byte %d: %w", offset, err)
}

// maxSample bounds samples as package wav does.
const maxSample = 8

// mean writes the mean of the channels, whose float64 sum is rounded once.
func mean(dst, interleaved []float32, h Header) error {
	for i := range dst {
		sum := 0.0
		for _, v := range interleaved[i*h.Channels:][:h.Channels] {
			sum += float64(v)
		}
		v := h.gain * sum / float64(h.Channels)
		if !(v >= -maxSample && v <= maxSample) {
			return fmt.Errorf("damaged: a sample is %v", v)
		}
		dst[i] = float32(v)
	}
	return nil
}
