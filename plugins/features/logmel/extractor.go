package logmel

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ErrTooShort says that a waveform has no whole window, which frames that are not centred need.
var ErrTooShort = errors.New("the waveform is shorter than one window")

// Extractor computes the spectrograms of one feature contract. It is immutable and safe for concurrent use.
type Extractor struct {
	features manifest.Features
	window   []float64 // n_fft values: the window, centred, and zeros
	bank     filterbank
	plan     plan
	scale    float64 // y = logarithm*scale + shift, with the base and the normalisation in it
	shift    float64
	scratch  sync.Pool // of *scratch
}

// scratch is what one row needs while it is computed.
type scratch struct {
	samples  []float32 // one frame at an edge of the waveform, with its padding
	frame    []float64 // n_fft windowed samples
	spectrum []float64 // n_fft/2 + 1 powers or magnitudes
	fft      transform
}

// New checks the contract and prepares its tables. The error names the field that cannot be.
func New(f manifest.Features) (*Extractor, error) {
	if err := check(f); err != nil {
		return nil, err
	}
	bank, err := newFilterbank(f)
	if err != nil {
		return nil, err
	}
	e := &Extractor{features: f, window: hann(f.WinLength, f.NFFT), bank: bank, plan: newPlan(f.NFFT), scale: 1}
	if f.Log == "log10" {
		e.scale = 1 / math.Ln10
	}
	if n := f.Normalization; n != nil {
		e.scale /= n.Std
		e.shift = -n.Mean / n.Std
	}
	e.scratch.New = func() any {
		return &scratch{
			samples:  make([]float32, f.NFFT),
			frame:    make([]float64, f.NFFT),
			spectrum: make([]float64, f.NFFT/2+1),
			fft:      e.plan.transform(),
		}
	}
	return e, nil
}

// Compute writes the spectrogram of wave, f32[frames, n_mels] with frames = Features.Frames(len(wave)), to the
// front of mel. It fails on a sample that is not finite, and with ErrTooShort.
func (e *Extractor) Compute(mel, wave []float32) error {
	for i, v := range wave {
		if v-v != 0 {
			return fmt.Errorf("sample %d is %v", i, v)
		}
	}
	f := &e.features
	frames := f.Frames(len(wave))
	if frames == 0 && len(wave) > 0 {
		return fmt.Errorf("%d samples with a window of %d: %w", len(wave), f.NFFT, ErrTooShort)
	}
	s := e.scratch.Get().(*scratch)
	defer e.scratch.Put(s)
	start := 0
	if f.Center {
		start = -f.NFFT / 2
	}
	for t := range frames {
		at := start + t*f.HopLength
		samples := s.samples
		if at >= 0 && at+f.NFFT <= len(wave) {
			samples = wave[at : at+f.NFFT]
		} else {
			edge(samples, wave, at, f.PadMode == "reflect")
		}
		e.frame(mel[t*f.NMels:(t+1)*f.NMels], samples, s)
	}
	return nil
}

// frame computes one frame of n_fft samples.
func (e *Extractor) frame(mel []float32, samples []float32, s *scratch) {
	window, frame := e.window[:len(samples)], s.frame[:len(samples)]
	for i, v := range samples {
		frame[i] = float64(v) * window[i]
	}
	s.fft.power(s.spectrum, frame)
	if e.features.Power == 1 {
		used := s.spectrum[e.bank.first:e.bank.end]
		for i, p := range used {
			used[i] = math.Sqrt(p)
		}
	}
	for band := range mel {
		x := math.Max(e.bank.apply(band, s.spectrum), e.features.LogFloor)
		mel[band] = float32(float64(math.Log(x)*e.scale) + e.shift)
	}
}

// edge fills samples from wave beginning at position at, which reaches beyond one end of wave or both.
func edge(samples, wave []float32, at int, reflect bool) {
	for i := range samples {
		j := at + i
		switch {
		case j >= 0 && j < len(wave):
			samples[i] = wave[j]
		case reflect:
			samples[i] = wave[mirror(j, len(wave))]
		default:
			samples[i] = 0
		}
	}
}

// mirror returns the index in [0,n) that position j is reflected to, the ends not repeated, as numpy.pad's mode
// "reflect" does: a wave shorter than the padding is reflected as often as it takes.
func mirror(j, n int) int {
	if n == 1 {
		return 0
	}
	period := 2 * (n - 1)
	j = (j%period + period) % period
	return min(j, period-j)
}

// hann returns the periodic Hann window of n values in the middle of width values.
func hann(n, width int) []float64 {
	w := make([]float64, width)
	for i := range n {
		w[(width-n)/2+i] = 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(n))
	}
	return w
}
