package dataset

import (
	"encoding/binary"
	"fmt"
	"os"

	"github.com/xtts-host/xtts-host/host/dataset/internal/resample"
	"github.com/xtts-host/xtts-host/host/dataset/internal/wav"
)

// Decoder reads clips at one sample rate. It reuses its buffers, which grow to the longest part of a clip it was asked for, so give
// each goroutine one of its own.
type Decoder struct {
	rate       int
	bytes      []byte
	mono       []float32 // at the file's rate
	resamplers map[int]*resample.Resampler
}

// NewDecoder returns a decoder that gives samples at a rate in Hz.
func NewDecoder(sampleRate int) *Decoder {
	return &Decoder{rate: sampleRate, resamplers: map[int]*resample.Resampler{}}
}

// Decode fills dst with the row's samples from, from+1, ..., in [-1,1); channels are averaged. The row must have that
// many: from+len(dst) <= row.Samples. Only the needed part of the file is read.
//
// It fails when the file cannot be read or is not the one that was indexed. The error does not name the file.
func (d *Decoder) Decode(dst []float32, row *Row, from int) error {
	if len(dst) == 0 || from < 0 || from+len(dst) > row.Samples {
		return fmt.Errorf("samples %d to %d of a clip of %d were asked for", from, from+len(dst), row.Samples)
	}
	if row.FileRate == d.rate {
		return d.read(dst, row, from)
	}
	r, ok := d.resamplers[row.FileRate]
	if !ok {
		r = resample.New(row.FileRate, d.rate)
		d.resamplers[row.FileRate] = r
	}
	lo, hi := r.Span(from, len(dst))
	lo, hi = max(lo, 0), min(hi, row.Frames)
	d.mono = grow(d.mono, hi-lo)
	if err := d.read(d.mono, row, lo); err != nil {
		return err
	}
	r.Resample(dst, d.mono, lo, from)
	for i, v := range dst {
		dst[i] = min(max(v, -1), maxSample) // a filter overshoots at full scale
	}
	return nil
}

// maxSample is the largest sample of 16 bits, as an f32.
const maxSample = 32767.0 / 32768

// read fills dst with frames of the clip at the file's own rate, from the given one on.
func (d *Decoder) read(dst []float32, row *Row, from int) error {
	info, err := statRegular(row.Path)
	if err != nil {
		return err
	}
	f, err := os.Open(row.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	h, err := wav.ReadHeader(f, info.Size())
	if err != nil {
		return err
	}
	if h.SampleRate != row.FileRate || h.Channels != row.FileChannels || h.Frames < row.Offset+row.Frames {
		return fmt.Errorf("changed since it was indexed: now %d frames of %d channels at %d Hz", h.Frames, h.Channels, h.SampleRate)
	}
	d.bytes = grow(d.bytes, len(dst)*h.FrameSize())
	if n, err := f.ReadAt(d.bytes, h.Offset+int64(row.Offset+from)*int64(h.FrameSize())); n < len(d.bytes) {
		return fmt.Errorf("%d of %d bytes could be read: %w", n, len(d.bytes), err)
	}
	downmix(dst, d.bytes, h.Channels)
	return nil
}

// downmix averages interleaved 16-bit samples.
func downmix(dst []float32, pcm []byte, channels int) {
	if channels == 1 {
		for i := range dst {
			dst[i] = float32(int16(binary.LittleEndian.Uint16(pcm[2*i:]))) / 32768
		}
		return
	}
	scale := 1 / (32768 * float32(channels))
	for i := range dst {
		sum := int32(0)
		for c := range channels {
			sum += int32(int16(binary.LittleEndian.Uint16(pcm[2*(i*channels+c):])))
		}
		dst[i] = float32(sum) * scale
	}
}

// grow returns a slice of n elements, in s when it is large enough. The elements have any value.
func grow[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n)
	}
	return s[:n]
}
