package audio

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/resample"
)

// Part is a part of a file, in frames.
type Part struct {
	Offset, Frames int
}

// Whole is all of the file.
func (f *File) Whole() Part { return Part{0, f.Frames} }

// Samples returns how many samples a part of so many frames has at another rate: rounded up.
func Samples(frames, fileRate, rate int) int { return resample.Len(frames, fileRate, rate) }

// Decoder reads parts of files at one sample rate. It reuses its buffers, which grow to the longest stretch that was
// asked for, so use one Decoder per goroutine.
type Decoder struct {
	Reader
	rate       int
	mono       []float32 // at the file's rate
	resamplers map[int]*resample.Resampler
}

// maxFilters bounds the number of filters that are kept, of 4 MiB at most: a data set has recordings of a few rates.
const maxFilters = 16

// NewDecoder returns a decoder that converts to a sample rate in Hz, MinRate to MaxRate.
func NewDecoder(rate int) *Decoder {
	return &Decoder{rate: rate, resamplers: map[int]*resample.Resampler{}}
}

// Read fills dst with the samples from, from+1, ... of a part at the decoder's rate, averaged over the channels. The
// part must have that many: from+len(dst) <= Samples(part.Frames, f.SampleRate, rate). Read reads only what it needs of
// the file, and any stretch has the bits that it has in the whole part. What is outside of the part counts as silence.
// Samples beyond full scale, from a float file or an overshoot of the filter, are clipped.
//
// It fails if the file cannot be read, or if float samples are not finite or beyond 8 times full scale. The error does
// not name the file.
func (d *Decoder) Read(dst []float32, f *File, part Part, from int) error {
	if err := checkRate(d.rate); err != nil {
		return err
	}
	if part.Offset < 0 || part.Frames < 0 || part.Offset > f.Frames-part.Frames {
		return fmt.Errorf("frames %d to %d of a file of %d were asked for", part.Offset, part.Offset+part.Frames,
			f.Frames)
	}
	if n := Samples(part.Frames, f.SampleRate, d.rate); from < 0 || from > n-len(dst) {
		return fmt.Errorf("samples %d to %d of a part of %d were asked for", from, from+len(dst), n)
	}
	if len(dst) == 0 {
		return nil
	}
	if f.SampleRate == d.rate {
		if err := d.Reader.Read(dst, f, part.Offset+from); err != nil {
			return err
		}
		limit(dst) // float files may exceed full scale
		return nil
	}
	r := d.resampler(f.SampleRate)
	lo, hi := r.Span(from, len(dst))
	lo, hi = max(lo, 0), min(hi, part.Frames)
	if hi-lo > cap(d.mono) {
		d.mono = make([]float32, hi-lo)
	}
	d.mono = d.mono[:hi-lo]
	if err := d.Reader.Read(d.mono, f, part.Offset+lo); err != nil {
		return err
	}
	r.Resample(dst, d.mono, lo, from)
	limit(dst) // a filter overshoots at full scale
	return nil
}

// resampler returns the filter from a rate to the decoder's.
func (d *Decoder) resampler(from int) *resample.Resampler {
	r, ok := d.resamplers[from]
	if !ok {
		if len(d.resamplers) == maxFilters {
			clear(d.resamplers)
		}
		r = resample.New(from, d.rate)
		d.resamplers[from] = r
	}
	return r
}

// limit clips samples to full scale.
func limit(s []float32) {
	for i, v := range s {
		s[i] = min(max(v, -1), 1)
	}
}

// MaxSeconds is the length of the longest file that [Read] reads. Of a longer one, a [Decoder] reads parts.
const MaxSeconds = 3600

// Read returns a whole file at a sample rate in Hz: the samples that the host has for a clip that is the file. The
// error names the file.
func Read(path string, rate int) ([]float32, error) {
	if err := checkRate(rate); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	samples, err := read(path, rate)
	if err != nil && !errors.As(err, new(*fs.PathError)) {
		err = hint.Errorf(withoutFile(hint.Of(err)), "%s: %w", path, err)
	}
	return samples, err
}

func read(path string, rate int) ([]float32, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch {
	case f.Frames == 0:
		return nil, errors.New("the audio has no samples")
	case f.Frames > MaxSeconds*f.SampleRate:
		return nil, hint.Errorf("cut it, or read parts of it with a Decoder", "it has %d s, more than %d",
			f.Frames/f.SampleRate, MaxSeconds)
	}
	samples := make([]float32, Samples(f.Frames, f.SampleRate, rate))
	if err := NewDecoder(rate).Read(samples, f, f.Whole(), 0); err != nil {
		return nil, err
	}
	return samples, nil
}

func checkRate(rate int) error {
	if rate < MinRate || rate > MaxRate {
		return fmt.Errorf("a sample rate of %d Hz was asked for, outside %d..%d", rate, MinRate, MaxRate)
	}
	return nil
}
