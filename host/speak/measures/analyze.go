package measures

import (
	"math"
	"math/bits"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel"
	"github.com/xtts-host/xtts-host/shared/pitch"
)

// Coefficients are the mel cepstra that are compared: 1 to 13. Coefficient 0 is the loudness, and is left out.
const Coefficients = 13

// Bands are those of the mel spectrogram, and Frames how many there are in a second.
const (
	Bands  = 80
	Frames = 100
)

const (
	highestVoice = 600  // Hz
	highest      = 8000 // Hz: so speech of 22.05 and of 24 kHz is measured alike
	overlaps     = 4    // windows at any time
)

// Contract is the feature contract of the measures at a sample rate. It is the same for all bundles, whatever theirs
// is, so that numbers of two models compare: frames of 40 ms every 10 ms, magnitudes, 80 bands up to 8 kHz, and natural
// logarithms.
func Contract(sampleRate int) manifest.Features {
	hop := max(1, int(math.Round(float64(sampleRate)/Frames)))
	return manifest.Features{
		SampleRate: sampleRate, NFFT: 1 << bits.Len(uint(overlaps*hop-1)), WinLength: overlaps * hop, HopLength: hop,
		Window: "hann", Center: true, PadMode: "constant", Power: 1, NMels: Bands, MelScale: "slaney",
		MelNorm: "slaney", FMin: 0, FMax: min(highest, float64(sampleRate)/2), Log: "ln", LogFloor: 1e-5,
	}
}

// Analyzer makes a Voice of a waveform. It is safe for concurrent use.
type Analyzer struct {
	mel    *mel.Extractor
	pitch  *pitch.Extractor
	cosine [Coefficients][Bands]float64
}

// NewAnalyzer prepares for waveforms of a sample rate. It fails for one that is too low for a voice.
func NewAnalyzer(sampleRate int) (*Analyzer, error) {
	a, err := new(Analyzer), error(nil)
	if a.mel, err = mel.New(Contract(sampleRate)); err != nil {
		return nil, err
	}
	if a.pitch, err = pitch.New(Contract(sampleRate), pitch.Config{FMax: highestVoice}); err != nil {
		return nil, err
	}
	for k := range a.cosine {
		for n := range Bands {
			// The orthonormal DCT-II has sqrt(2/N), and another sqrt(2/N) makes of it the coefficients of
			// ln|H| = c0 + sum of c_k cos(k w), for which the constant of the distortion makes dB.
			a.cosine[k][n] = 2.0 / Bands * math.Cos(math.Pi*float64(k+1)*(float64(n)+0.5)/Bands)
		}
	}
	return a, nil
}

// Voice is what is measured of a waveform, one value for each frame.
type Voice struct {
	Seconds float64
	// Mel is the log-mel spectrogram, frame after frame of Bands values.
	Mel []float32
	// Cepstra are the coefficients 1 to 13.
	Cepstra [][Coefficients]float64
	// F0 is the pitch in Hz, 0 in a frame without voice.
	F0 []float64
	// Silent frames are far below the loudest one.
	Silent []bool
}

// Analyze measures a waveform of at least one sample. It fails if a sample is not finite.
func (a *Analyzer) Analyze(wave []float32) (*Voice, error) {
	f := a.mel.Features()
	frames := f.Frames(len(wave))
	spectra := make([]float32, frames*Bands)
	if err := a.mel.Compute(spectra, wave); err != nil {
		return nil, err
	}
	pitches, energies := make([]float32, frames), make([]float32, frames)
	if err := a.pitch.Compute(pitches, energies, wave); err != nil {
		return nil, err
	}
	v := &Voice{
		Seconds: f.Seconds(len(wave)), Mel: spectra, Cepstra: make([][Coefficients]float64, frames),
		F0: make([]float64, frames), Silent: silent(wave, f.HopLength, frames),
	}
	for t := range frames {
		v.Cepstra[t] = a.cepstrum(spectra[t*Bands : (t+1)*Bands])
		if pitches[t] != 0 {
			v.F0[t] = math.Exp(float64(pitches[t]))
		}
	}
	return v, nil
}

func (a *Analyzer) cepstrum(logs []float32) (c [Coefficients]float64) {
	for k := range c {
		for n, x := range logs {
			c[k] += a.cosine[k][n] * float64(x)
		}
	}
	return c
}

// The levels below which a frame is silent.
const (
	quiet = 1e-3 // -60 dB of full scale
	faint = 1e-2 // -40 dB of the loudest frame
)

// silent returns which frames are silent, by the root mean square of the two hops around the centre of each; beyond the
// ends there are zeros.
func silent(wave []float32, hop, frames int) []bool {
	levels, loudest := make([]float64, frames), 0.0
	for t := range levels {
		part := wave[min(len(wave), max(0, (t-1)*hop)):min(len(wave), (t+1)*hop)]
		for _, x := range part {
			levels[t] += float64(x) * float64(x)
		}
		levels[t] = math.Sqrt(levels[t] / float64(2*hop))
		loudest = max(loudest, levels[t])
	}
	out := make([]bool, frames)
	for t, level := range levels {
		out[t] = level < quiet || level < faint*loudest
	}
	return out
}

// Silence is the share of silent frames, from 0 to 1.
func Silence(v *Voice) float64 {
	n := 0
	for _, s := range v.Silent {
		if s {
			n++
		}
	}
	return float64(n) / float64(max(1, len(v.Silent)))
}
