package pitch

import (
	"math"
	"math/bits"
	"sync"

	"github.com/xtts-host/xtts-host/shared/fft"
	"github.com/xtts-host/xtts-host/shared/frame"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// ErrTooShort means that a waveform is too short for one mel frame, if frames are not centred.
var ErrTooShort = frame.ErrTooShort

// silence is the smallest root mean square before the logarithm, 100 dB below full scale.
const silence = 1e-5

// Extractor computes pitch and energy for one configuration. It is immutable and safe for concurrent use.
type Extractor struct {
	features manifest.Features
	config   Config // complete
	lags     lags
	cutter   frame.Cutter
	plan     fft.Plan
	size     int       // of the transform
	weight   []float64 // by lag: samples of the frame / pairs of samples
	scratch  sync.Pool // of *scratch
}

// scratch is the memory that one row needs during the computation.
type scratch struct {
	samples  []float32 // one frame at an edge of the waveform, with its padding
	frame    []float64 // the frame followed by zeros, size values
	spectrum []float64 // size/2 + 1 powers, then the autocorrelation
	even     []float64 // the powers of all size frequencies
	diff     []float64 // by lag: the difference function
	fft      fft.Transform
}

// New prepares the tables of a configuration. It uses the contract's settings of frame positions: sample_rate, n_fft,
// hop_length, center and pad_mode. The error names the invalid field.
func New(f manifest.Features, c Config) (*Extractor, error) {
	if _, err := frame.New(f, f.NFFT); err != nil { // the contract first: the configuration needs its sample rate
		return nil, err
	}
	l, err := c.complete(f.SampleRate)
	if err != nil {
		return nil, err
	}
	cutter, err := frame.New(f, c.FrameLength)
	if err != nil {
		return nil, err
	}
	e := &Extractor{config: c, lags: l, features: f, cutter: cutter}
	// The convolution is circular: the size must be at least the frame plus one more than the longest lag.
	e.size = 1 << bits.Len(uint(c.FrameLength+l.longest))
	e.plan = fft.New(e.size)
	e.weight = make([]float64, l.longest+2)
	for lag := range e.weight {
		e.weight[lag] = float64(c.FrameLength) / float64(c.FrameLength-lag)
	}
	e.scratch.New = func() any {
		return &scratch{
			samples:  make([]float32, c.FrameLength),
			frame:    make([]float64, e.size),
			spectrum: make([]float64, e.size/2+1),
			even:     make([]float64, e.size),
			diff:     make([]float64, l.longest+2),
			fft:      e.plan.Transform(),
		}
	}
	return e, nil
}

// Features returns the contract.
func (e *Extractor) Features() manifest.Features { return e.features }

// Config returns the configuration with its defaults.
func (e *Extractor) Config() Config { return e.config }

// Compute writes pitch and energy of wave, f32[frames] each with frames = Features.Frames(len(wave)), to the start of
// the slices. It fails with ErrTooShort, or if a sample is not finite.
func (e *Extractor) Compute(pitch, energy, wave []float32) error {
	frames, err := e.cutter.Count(wave)
	if err != nil {
		return err
	}
	s := e.scratch.Get().(*scratch)
	defer e.scratch.Put(s)
	rate := float64(e.features.SampleRate)
	for t := range frames {
		samples := e.cutter.Cut(t, wave, s.samples)
		power := 0.0
		for i, v := range samples {
			x := float64(v)
			s.frame[i] = x
			power += float64(x * x)
		}
		level := math.Sqrt(power / float64(len(samples)))
		energy[t] = float32(math.Log(math.Max(level, silence)))
		pitch[t] = 0
		if level > silence {
			if period := e.period(s, power); period > 0 {
				pitch[t] = float32(math.Log(rate / period))
			}
		}
	}
	return nil
}
