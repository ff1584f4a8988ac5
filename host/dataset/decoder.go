package dataset

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/dataset/internal/audio"
	"github.com/xtts-host/xtts-host/host/dataset/internal/resample"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Decoder reads clips at one sample rate. It reuses its buffers, which grow to the longest part of a clip it was asked for, so give
// each goroutine one of its own.
type Decoder struct {
	rate       int
	reader     audio.Reader
	mono       []float32 // at the file's rate
	resamplers map[int]*resample.Resampler
}

// maxFilters bounds the filters that are kept: a data set has recordings of a few rates. maxTaps bounds the coefficients of
// each, 4 MiB: usual rates take half of that at most (384,000 to 22,050 Hz: 489,216), one without a common divisor
// 290 MB and a minute to compute.
const (
	maxFilters = 16
	maxTaps    = 1 << 20
)

// checkRate refuses a recording's rate whose filter would be too large.
func checkRate(from, to int) error {
	if from == to {
		return nil
	}
	if n := resample.Taps(from, to); n > maxTaps {
		return hint.Errorf("resample it to a usual rate, such as 48000 Hz",
			"a filter from %d to %d Hz would have %d coefficients, more than %d", from, to, n, maxTaps)
	}
	return nil
}

// NewDecoder returns a decoder that gives samples at a rate in Hz.
func NewDecoder(sampleRate int) *Decoder {
	return &Decoder{rate: sampleRate, resamplers: map[int]*resample.Resampler{}}
}

// Decode fills dst with the row's samples from, from+1, ..., in [-1,1]; channels are averaged. The row must have that
// many: from+len(dst) <= row.Samples. Only the needed part of the file is read. What lies beyond full scale, in a float
// file or by a filter's overshoot, is clipped.
//
// It fails when the file cannot be read, is not the one that was indexed, or has float samples that are not finite or
// beyond 8 times full scale. The error does not name the file.
func (d *Decoder) Decode(dst []float32, row *Row, from int) error {
	if len(dst) == 0 || from < 0 || from+len(dst) > row.Samples {
		return fmt.Errorf("samples %d to %d of a clip of %d were asked for", from, from+len(dst), row.Samples)
	}
	if row.FileRate == d.rate {
		if err := d.read(dst, row, from); err != nil {
			return err
		}
		limit(dst) // float files may go beyond
		return nil
	}
	r, ok := d.resamplers[row.FileRate]
	if !ok {
		if len(d.resamplers) == maxFilters {
			clear(d.resamplers)
		}
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
	limit(dst) // a filter overshoots at full scale
	return nil
}

// limit clips samples to full scale.
func limit(s []float32) {
	for i, v := range s {
		s[i] = min(max(v, -1), 1)
	}
}

// read fills dst with samples of the row at the file's own rate, from the given one on.
func (d *Decoder) read(dst []float32, row *Row, from int) error {
	f, err := audio.Open(row.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	if f.SampleRate != row.FileRate || f.Channels != row.FileChannels || f.Frames < row.Offset+row.Frames {
		return fmt.Errorf("changed since it was indexed: now %d frames of %s at %d Hz", f.Frames, channels(f.Channels), f.SampleRate)
	}
	return d.reader.Read(dst, f, row.Offset+from)
}

func channels(n int) string {
	if n == 1 {
		return "1 channel"
	}
	return fmt.Sprintf("%d channels", n)
}

// grow returns a slice of n elements, in s when it is large enough. The elements have any value.
func grow[T any](s []T, n int) []T {
	if n > cap(s) {
		return make([]T, n)
	}
	return s[:n]
}
