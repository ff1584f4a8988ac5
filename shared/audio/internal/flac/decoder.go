package flac

import (
	"errors"
	"fmt"
	"io"
)

// Decoder reads samples. The zero value is ready for use. It reuses its buffers, so use one Decoder per goroutine.
type Decoder struct {
	bits     bitReader
	space    []int32 // the samples of one frame, channel after channel
	channels [8][]int32
}

// Read fills dst with the samples from, from+1, ... of a file of size bytes whose header is h: the mean of the
// channels, divided by 2^(Bits-1). The file must have that many: from+len(dst) <= h.Frames.
//
// It fails if a frame is damaged. Frames before the part are skipped by bisection and not all checked. The MD5 of the
// whole file in the STREAMINFO block is not checked, but every frame has a CRC.
func (d *Decoder) Read(dst []float32, r io.ReaderAt, size int64, h Header, from int) error {
	if from < 0 || from+len(dst) > h.Frames {
		return fmt.Errorf("samples %d to %d of %d were asked for", from, from+len(dst), h.Frames)
	}
	d.bits.src, d.bits.size = r, size
	defer func() { d.bits.src = nil }() // do not keep the file alive
	offset, at := d.find(&h, from)
	err := d.read(dst, &h, from, offset, at)
	if err != nil && offset != h.Offset {
		// Compressed samples may look like a frame header: once in 2^32 bytes by chance. Decoding from the start avoids
		// that.
		err = d.read(dst, &h, from, h.Offset, 0)
	}
	return err
}

// read decodes frame after frame, starting at offset, whose first sample is at.
func (d *Decoder) read(dst []float32, h *Header, from int, offset int64, at int) error {
	d.bits.seek(offset)
	scale := 1 / float32(int(1)<<(h.Bits-1))
	for done := 0; done < len(dst); {
		n, err := d.frame(h, at)
		if err != nil {
			return fmt.Errorf("FLAC frame at sample %d, byte %d: %w", at, offset, err)
		}
		if skip := from + done - at; skip < n {
			part := dst[done:min(len(dst), done+n-skip)]
			d.mean(part, h, skip, scale)
			done += len(part)
		}
		at += n
		offset = d.bits.offset()
	}
	return nil
}

// mean writes the mean of the channels of the current frame.
func (d *Decoder) mean(dst []float32, h *Header, skip int, scale float32) {
	if h.Channels == 1 {
		for i, v := range d.channels[0][skip:][:len(dst)] {
			dst[i] = float32(v) * scale // exact: 24 bits and a power of 2
		}
		return
	}
	divisor := float64(h.Channels) / float64(scale)
	for i := range dst {
		sum := int64(0)
		for _, c := range d.channels[:h.Channels] {
			sum += int64(c[skip+i])
		}
		dst[i] = float32(float64(sum) / divisor)
	}
}

// frame decodes the next frame, whose first sample must be at, into d.channels. It returns the number of samples per
// channel.
func (d *Decoder) frame(h *Header, at int) (int, error) {
	b := &d.bits
	b.startCRC()
	f, err := d.header(h)
	if err != nil {
		return 0, err
	}
	if f.first != at {
		return 0, fmt.Errorf("its header has first sample %d", f.first)
	}
	d.space = grow(d.space, f.samples*h.Channels)
	for c := range h.Channels {
		width := uint(h.Bits)
		if f.assign == leftSide && c == 1 || f.assign == sideRight && c == 0 || f.assign == midSide && c == 1 {
			width++ // a difference has one bit more
		}
		d.channels[c] = d.space[c*f.samples : (c+1)*f.samples]
		if err := d.subframe(d.channels[c], width); err != nil {
			return 0, err
		}
		if b.err != nil {
			return 0, b.err
		}
	}
	b.align()
	sum := b.sumCRC()
	if stored := b.read(16); b.err != nil {
		return 0, b.err
	} else if stored != uint32(sum) {
		return 0, errors.New("damaged: its checksum is wrong")
	}
	stereo(f.assign, d.channels[0], d.channels[1])
	return f.samples, nil
}

// The ways to code two channels as one channel and a difference.
const (
	leftSide = 8 + iota
	sideRight
	midSide
)

// stereo restores left and right (RFC 9639, section 4.2).
func stereo(assign int, a, b []int32) {
	switch assign {
	case leftSide:
		for i, left := range a {
			b[i] = left - b[i]
		}
	case sideRight:
		for i, right := range b {
			a[i] += right
		}
	case midSide:
		for i, side := range b {
			mid := a[i]<<1 | side&1 // the division dropped the bit that sum and difference share
			a[i], b[i] = (mid+side)>>1, (mid-side)>>1
		}
	}
}

// header reads a frame header.
func (d *Decoder) header(h *Header) (frameHeader, error) {
	b := &d.bits
	if len(b.buf)-b.used() < maxHeader && b.next < b.size {
		b.load()
		if b.err != nil {
			return frameHeader{}, b.err
		}
	}
	if b.used() == len(b.buf) {
		return frameHeader{}, errors.New("the file ends before it")
	}
	f, err := parseFrameHeader(b.buf[b.used():], h)
	if err != nil {
		return frameHeader{}, err
	}
	for range f.length {
		b.read(8)
	}
	return f, nil
}

// near is the distance in bytes within which frames are decoded one after another instead of searched.
const near = 32 << 10

// find returns the offset of a frame at or before a sample, and the frame's first sample. Without better knowledge it
// is the file's first frame. It bisects the file by the numbers in the frame headers.
func (d *Decoder) find(h *Header, target int) (offset int64, sample int) {
	lo, hi := h.Offset, d.bits.size
	variable, known := false, false
	for hi-lo > near {
		mid := lo + (hi-lo)/2
		at, f, ok := d.scan(h, mid, hi)
		if !known && ok {
			variable, known = f.variable, true
		}
		if ok && f.variable == variable && f.first > sample && f.first <= target {
			lo, sample = at, f.first
		} else {
			hi = mid
		}
	}
	return lo, sample
}

// scan returns the first frame header that starts in from..to-1.
func (d *Decoder) scan(h *Header, from, to int64) (int64, frameHeader, bool) {
	b := &d.bits
	for at := from; at < to; {
		b.seek(at)
		b.load()
		if b.err != nil {
			return 0, frameHeader{}, false
		}
		starts := int(min(int64(len(b.buf)), to-at))
		if b.next < b.size {
			starts = min(starts, len(b.buf)-maxHeader) // a complete header is in the buffer
		}
		for i := range starts {
			if b.buf[i] != 0xFF {
				continue
			}
			if f, err := parseFrameHeader(b.buf[i:], h); err == nil {
				return at + int64(i), f, true
			}
		}
		at += int64(starts)
	}
	return 0, frameHeader{}, false
}

// grow returns a slice of n elements, using s if it is large enough. The elements have arbitrary values.
func grow(s []int32, n int) []int32 {
	if n > cap(s) {
		return make([]int32, n)
	}
	return s[:n]
}
