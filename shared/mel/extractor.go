package mel

import (
	"math"
	"sync"

	"github.com/xtts-host/xtts-host/shared/fft"
	"github.com/xtts-host/xtts-host/shared/frame"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ErrTooShort means that a waveform is shorter than one window, if frames are not centred.
var ErrTooShort = frame.ErrTooShort

// Extractor computes the spectrograms of one feature contract. It is immutable and safe for concurrent use.
type Extractor struct {
	features manifest.Features
	cutter   frame.Cutter
	window   []float64 // n_fft values: the window, centred, and zeros
	bank     filterbank
	plan     fft.Plan
	scale    float64 // y = logarithm*scale + shift, which includes the base of the logarithm and the normalization
	shift    float64
	scratch  sync.Pool // of *scratch
}

// scratch is the memory that one row needs during the computation.
type scratch struct {
	samples  []float32 // one frame at an edge of the waveform, with its padding
	frame    []float64 // n_fft windowed samples
	spectrum []float64 // n_fft/2 + 1 powers or magnitudes
	fft      fft.Transform
}

// New checks the contract and prepares its tables. The error names the invalid field.
func New(f manifest.Features) (*Extractor, error) {
	cutter, err := frame.New(f, f.NFFT)
	if err != nil {
		return nil, err
	}
	if err := check(f); err != nil {
		return nil, err
	}
	bank, err := newFilterbank(f)
	if err != nil {
		return nil, err
	}
	e := &Extractor{
		features: f, cutter: cutter, window: hann(f.WinLength, f.NFFT), bank: bank, plan: fft.New(f.NFFT), scale: 1,
	}
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
			fft:      e.plan.Transform(),
		}
	}
	return e, nil
}

// Features returns the contract.
func (e *Extractor) Features() manifest.Features { return e.features }

// Cutter returns what cuts a waveform into the frames of the spectrogram.
func (e *Extractor) Cutter() frame.Cutter { return e.cutter }

// Tables are what the extractor computes with.
type Tables struct {
	// Window has n_fft values: the window, centred, and zeros.
	Window []float64
	// Bands are the mel filters, and First and End the bins that at least one of them uses.
	Bands      []Band
	First, End int
	// A value is the logarithm times Scale, plus Shift: the base of the logarithm, and the normalization.
	Scale, Shift float64
}

// Tables returns the tables, which the caller must not change.
func (e *Extractor) Tables() Tables {
	return Tables{e.window, e.bank.bands, e.bank.first, e.bank.end, e.scale, e.shift}
}

// Compute writes the spectrogram of wave, f32[frames, n_mels] with frames = Features.Frames(len(wave)), to the start of
// mel. It fails with ErrTooShort, or if a sample is not finite.
func (e *Extractor) Compute(mel, wave []float32) error {
	frames, err := e.cutter.Count(wave)
	if err != nil {
		return err
	}
	bands := e.features.NMels
	s := e.scratch.Get().(*scratch)
	defer e.scratch.Put(s)
	for t := range frames {
		e.frame(mel[t*bands:(t+1)*bands], e.cutter.Cut(t, wave, s.samples), s)
	}
	return nil
}

// frame computes one frame of n_fft samples.
func (e *Extractor) frame(mel []float32, samples []float32, s *scratch) {
	window, frame := e.window[:len(samples)], s.frame[:len(samples)]
	for i, v := range samples {
		frame[i] = float64(v) * window[i]
	}
	s.fft.Power(s.spectrum, frame)
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

// hann returns the periodic Hann window of n values, centred in width values.
func hann(n, width int) []float64 {
	w := make([]float64, width)
	for i := range n {
		w[(width-n)/2+i] = 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/float64(n))
	}
	return w
}
