// Package frame cuts waveforms into frames at the positions of the mel frames of a feature contract. So everything that
// is computed from a clip has the same number of frames, centred on the same samples:
//
//	cutter, err := frame.New(features, 1020)
//	...
//	n, err := cutter.Count(wave)
//	for t := range n {
//		samples := cutter.Cut(t, wave, scratch) // 1020 samples
//	}
package frame

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ErrTooShort means that a waveform is too short for one mel frame, if frames are not centred.
var ErrTooShort = errors.New("the waveform is shorter than one window")

// Cutter cuts frames of one length. It is immutable and safe for concurrent use.
type Cutter struct {
	features manifest.Features
	length   int
	first    int // first sample of frame 0; negative in the padding
}

// New checks the contract's frame settings and returns a cutter for frames of length samples. If length is n_fft, these
// are the mel frames.
func New(f manifest.Features, length int) (Cutter, error) {
	refuse := func(advice, format string, args ...any) (Cutter, error) {
		return Cutter{}, hint.Errorf(advice, "features: "+format, args...)
	}
	switch {
	case f.SampleRate < 1:
		return refuse("", "sample_rate is %d", f.SampleRate)
	case f.NFFT < 4 || f.NFFT%2 != 0:
		return refuse("", "n_fft is %d: an even number of at least 4 is needed", f.NFFT)
	case f.HopLength < 1:
		return refuse("", "hop_length is %d", f.HopLength)
	case f.PadMode != "constant" && f.PadMode != "reflect":
		return refuse("constant or reflect", "pad_mode %q is unknown", f.PadMode)
	}
	c := Cutter{features: f, length: length, first: -length / 2}
	if !f.Center {
		c.first = f.NFFT/2 - length/2
	}
	return c, nil
}

// Count returns the number of frames of wave, Features.Frames(len(wave)). It fails with ErrTooShort, or if a sample is
// not finite.
func (c *Cutter) Count(wave []float32) (int, error) {
	for i, v := range wave {
		if v-v != 0 {
			return 0, fmt.Errorf("sample %d is %v", i, v)
		}
	}
	n := c.features.Frames(len(wave))
	if n == 0 && len(wave) > 0 {
		return 0, fmt.Errorf("%d samples with a window of %d: %w", len(wave), c.features.NFFT, ErrTooShort)
	}
	return n, nil
}

// First returns the index of the first sample of frame 0, which is negative in the padding.
func (c *Cutter) First() int { return c.first }

// Cut returns the samples of frame t: a part of wave, or scratch if the frame extends into the padding at the ends.
// scratch must have room for a frame.
func (c *Cutter) Cut(t int, wave, scratch []float32) []float32 {
	at := c.first + t*c.features.HopLength
	if at >= 0 && at+c.length <= len(wave) {
		return wave[at : at+c.length]
	}
	scratch = scratch[:c.length]
	pad(scratch, wave, at, c.features.PadMode == "reflect")
	return scratch
}

// pad fills samples from wave, starting at index at, if the range extends beyond one or both ends of wave.
func pad(samples, wave []float32, at int, reflect bool) {
	for i := range samples {
		j := at + i
		switch {
		case j >= 0 && j < len(wave):
			samples[i] = wave[j]
		case reflect && len(wave) > 0:
			samples[i] = wave[mirror(j, len(wave))]
		default:
			samples[i] = 0
		}
	}
}

// mirror returns the index in [0,n) to which index j is reflected, without repeating the ends, like numpy.pad's mode
// "reflect": if the wave is shorter than the padding, it is reflected repeatedly.
func mirror(j, n int) int {
	if n == 1 {
		return 0
	}
	period := 2 * (n - 1)
	j = (j%period + period) % period
	return min(j, period-j)
}
