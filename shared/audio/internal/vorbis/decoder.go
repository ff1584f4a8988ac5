package vorbis

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/jfreymuth/vorbis"

	"github.com/xtts-host/xtts-host/shared/audio/internal/ogg"
)

// Decoder reads samples. The zero value is ready for use. It keeps the tables of the last file, which those of the same
// encoder and settings share. Use one Decoder per goroutine.
type Decoder struct {
	dec      *vorbis.Decoder
	id       []byte // the first and the third packet, for which dec was made
	setup    []byte
	samples  []float32 // of one packet, interleaved
	channels int
}

// Read fills dst with the samples from, from+1, ... of a file: the mean of the channels. The file must have that many:
// from+len(dst) <= h.Frames. Pages before the part are skipped by their headers. Samples may exceed -1..1 slightly.
func (d *Decoder) Read(dst []float32, h Header, from int) (err error) {
	if from < 0 || from+len(dst) > h.Frames {
		return fmt.Errorf("samples %d to %d of %d were asked for", from, from+len(dst), h.Frames)
	}
	p := h.stream.Packets()
	defer func() {
		// The decoder indexes its tables with what it reads.
		if r := recover(); r != nil {
			d.dec = nil
			err = fmt.Errorf("%w: %v", at(p, errDamaged), r)
		}
	}()
	if err := d.prepare(p, h); err != nil {
		return err
	}
	return d.read(dst, p, from)
}

var errDamaged = errors.New("damaged packet")

// at adds the place of the last packet to an error.
func at(p *ogg.Packets, err error) error {
	offset, _, _ := p.Page()
	return fmt.Errorf("page of Vorbis at byte %d: %w", offset, err)
}

// prepare reads the three packets before the samples.
func (d *Decoder) prepare(p *ogg.Packets, h Header) error {
	var headers [3][]byte
	for i := range headers {
		packet, err := p.Next()
		if err == io.EOF {
			return errors.New("truncated: the file ends in the headers")
		}
		if err != nil {
			return err
		}
		if len(packet) < 7 || packet[0] != byte(2*i+1) || string(packet[1:7]) != mark[1:] {
			return at(p, errors.New("damaged header"))
		}
		if i != 1 { // the comments are not needed
			headers[i] = bytes.Clone(packet)
		}
	}
	if d.dec != nil && bytes.Equal(d.id, headers[0]) && bytes.Equal(d.setup, headers[2]) {
		d.dec.Clear()
		return nil
	}
	if err := checkSetup(headers[2][7:]); err != nil {
		return at(p, fmt.Errorf("setup: %w", err))
	}
	dec := new(vorbis.Decoder)
	for _, i := range []int{0, 2} {
		if err := dec.ReadHeader(headers[i]); err != nil {
			return at(p, err)
		}
	}
	d.dec, d.id, d.setup, d.channels = dec, headers[0], headers[2], h.Channels
	if n := dec.BufferSize(); n > len(d.samples) {
		d.samples = make([]float32, n)
	}
	return nil
}

// read decodes packet after packet until dst is full.
func (d *Decoder) read(dst []float32, p *ogg.Packets, from int) error {
	begin, _, _ := p.Page()
	position, _, err := p.SeekTo(begin, int64(from))
	if err != nil {
		return err
	}
	// The first packet gives no samples: its second half is added to the next one.
	for done, warm := 0, false; done < len(dst); {
		packet, err := p.Next()
		if err == io.EOF {
			return fmt.Errorf("damaged: the file ends after %d samples, expected %d", position, from+len(dst))
		}
		if err != nil {
			return err
		}
		if len(packet) == 0 {
			continue // an encoder may write empty packets, which stand for nothing
		}
		out, err := d.dec.DecodeInto(packet, d.samples)
		if err != nil {
			return at(p, err)
		}
		n := len(out) / d.channels
		if skip := from + done - int(position); skip < n {
			part := dst[done:min(len(dst), done+n-skip)]
			if err := d.mean(part, out[skip*d.channels:], from+done); err != nil {
				return at(p, err)
			}
			done += len(part)
		}
		position += int64(n)
		if _, ends, granule := p.Page(); warm && ends && done < len(dst) && granule != position {
			return at(p,
				fmt.Errorf("%w: it ends with sample %d, but %d were decoded", ErrUnsupported, granule, position))
		}
		warm = true
	}
	return nil
}

// maxSample bounds samples as package wav does.
const maxSample = 8

// mean writes the mean of the channels, whose float64 sum is rounded once. first is the index of dst[0] in the file.
func (d *Decoder) mean(dst, interleaved []float32, first int) error {
	for i := range dst {
		sum := 0.0
		for _, v := range interleaved[i*d.channels:][:d.channels] {
			sum += float64(v)
		}
		v := sum / float64(d.channels)
		if !(v >= -maxSample && v <= maxSample) {
			return fmt.Errorf("damaged: sample %d is %v", first+i, v)
		}
		dst[i] = float32(v)
	}
	return nil
}
