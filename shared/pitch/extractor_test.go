package pitch

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

func base() manifest.Features {
	return manifest.Features{
		SampleRate: 22050, NFFT: 1024, WinLength: 1024, HopLength: 256, Center: true, PadMode: "constant",
	}
}

// compute fails the test if Compute fails.
func compute(t *testing.T, f manifest.Features, c Config, wave []float32) (pitch, energy []float32) {
	t.Helper()
	e, err := New(f, c)
	if err != nil {
		t.Fatal(err)
	}
	n := f.Frames(len(wave))
	pitch, energy = make([]float32, n), make([]float32, n)
	if err := e.Compute(pitch, energy, wave); err != nil {
		t.Fatal(err)
	}
	return pitch, energy
}

// voice returns n samples of a sum of harmonics of hz(t), with t in seconds and the given amplitudes, starting with the
// first harmonic.
func voice(n, rate int, hz func(t float64) float64, amplitudes ...float64) []float32 {
	out := make([]float32, n)
	phase := 0.0
	for i := range out {
		for k, a := range amplitudes {
			out[i] += float32(a * math.Sin(float64(k+1)*phase+float64(k*k)))
		}
		// The frequency at the midpoint gives the exact phase if the frequency changes linearly.
		phase += 2 * math.Pi * hz((float64(i)+0.5)/float64(rate)) / float64(rate)
	}
	return out
}

func steady(hz float64) func(float64) float64 { return func(float64) float64 { return hz } }

// TestPitch: the pitch of known signals is within half a percent, in every frame within the signal.
func TestPitch(t *testing.T) {
	saw := []float64{0.3, 0.15, 0.1, 0.075, 0.06, 0.05, 0.04}
	glide := func(from, to float64) func(float64) float64 {
		return func(t float64) float64 { return from + (to-from)*t }
	}
	for _, c := range []struct {
		name       string
		rate       int
		config     Config
		hz         func(t float64) float64
		amplitudes []float64
	}{
		{"lowest", 22050, Config{}, steady(66), []float64{0.5}},
		{"100 Hz", 22050, Config{}, steady(100), []float64{0.5}},
		{"between two lags", 22050, Config{}, steady(217.3), []float64{0.5}},
		{"440 Hz, faint", 22050, Config{}, steady(440), []float64{1e-4}},
		{"highest", 22050, Config{}, steady(990), []float64{0.5}},
		{"harmonics", 22050, Config{}, steady(123.4), saw},
		{"16 kHz", 16000, Config{}, steady(210), saw},
		{"44.1 kHz", 44100, Config{}, steady(210), saw},
		{"short frames of a high voice", 22050, Config{FMin: 200, FrameLength: 256}, steady(330), saw},
		{"rising", 22050, Config{}, glide(90, 250), saw},
		{"falling", 22050, Config{}, glide(400, 150), saw},
		{"sweep of a tone", 22050, Config{}, glide(150, 600), []float64{0.5}},
		// Octave errors: the fundamental is 30 dB below its harmonics, and the even harmonics are twice as strong as
		// the odd ones.
		{"weak fundamental", 22050, Config{}, steady(150), []float64{0.01, 0.3, 0.15, 0.3, 0.15, 0.3}},
		{"no fundamental", 22050, Config{}, steady(150), []float64{0, 0.3, 0.3, 0.2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := base()
			f.SampleRate = c.rate
			pitch, _ := compute(t, f, c.config, voice(c.rate/2, c.rate, c.hz, c.amplitudes...))
			inside := f.SampleRate/32/f.HopLength + 2
			for i := inside; i < len(pitch)-inside; i++ {
				want := c.hz(float64(i*f.HopLength) / float64(f.SampleRate))
				if got := math.Exp(float64(pitch[i])); math.Abs(got/want-1) > 0.005 {
					t.Errorf("frame %d: %.2f Hz, want %.2f", i, got, want)
				}
			}
		})
	}
}

// TestPitchInNoise: the octave and the voicing are right with white noise 10 dB below the signal.
func TestPitchInNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	wave := voice(11025, 22050, steady(140), 0.05, 0.2, 0.1, 0.1)
	for i := range wave {
		wave[i] += float32(0.055 * rng.NormFloat64()) // the voice has an RMS of 0.18
	}
	pitch, _ := compute(t, base(), Config{}, wave)
	for i, p := range pitch[4 : len(pitch)-4] {
		if hz := math.Exp(float64(p)); math.Abs(hz/140-1) > 0.02 {
			t.Errorf("frame %d: %.1f Hz", i+4, hz)
		}
	}
}

func TestUnvoiced(t *testing.T) {
	white := func(i int, r *rand.Rand) float32 { return float32(0.3 * r.NormFloat64()) }
	var last float32
	for name, sample := range map[string]func(i int, r *rand.Rand) float32{
		"digital silence": func(int, *rand.Rand) float32 { return 0 },
		"a constant":      func(int, *rand.Rand) float32 { return 0.7 },
		"one step":        func(i int, _ *rand.Rand) float32 { return float32(i / 4000) },
		"a tone below the silence": func(i int, _ *rand.Rand) float32 {
			return float32(1e-6 * math.Sin(float64(i)/20))
		},
		"a hum below f_min": func(i int, _ *rand.Rand) float32 {
			return float32(math.Sin(2 * math.Pi * 25 * float64(i) / 22050))
		},
		"white noise": white,
		"dither":      func(_ int, r *rand.Rand) float32 { return float32(r.IntN(3)-1) / 32768 },
		"hiss": func(i int, r *rand.Rand) float32 { // noise with a correlation between neighbours, as in a fricative
			now := white(i, r)
			d := now - last
			last = now
			return d
		},
	} {
		rng := rand.New(rand.NewPCG(3, 4))
		wave := make([]float32, 11025)
		for i := range wave {
			wave[i] = sample(i, rng)
		}
		pitch, _ := compute(t, base(), Config{}, wave)
		for i, p := range pitch {
			if p != 0 {
				t.Errorf("%s: frame %d has %.1f Hz", name, i, math.Exp(float64(p)))
			}
		}
	}
}

// TestLongLags: noise has no smaller difference at long lags, which few pairs of samples have, than at short ones.
func TestLongLags(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	wave := make([]float32, 11025)
	for i := range wave {
		wave[i] = float32(0.3 * rng.NormFloat64())
	}
	pitch, _ := compute(t, base(), Config{FrameLength: 680, VoicingThreshold: 0.7}, wave)
	for i, p := range pitch[2 : len(pitch)-2] {
		if p != 0 {
			t.Errorf("frame %d has %.1f Hz", i+2, math.Exp(float64(p)))
		}
	}
}

// TestBand: a pitch above f_max is reported one or more octaves lower, and a pitch below f_min is not reported.
func TestBand(t *testing.T) {
	for _, c := range []struct {
		config   Config
		hz, want float64
	}{
		{Config{FMax: 500}, 450, 450},
		{Config{FMax: 500}, 900, 450},
		{Config{}, 100, 100},
		{Config{FMin: 120}, 100, 1}, // a pitch of 0
	} {
		pitch, _ := compute(t, base(), c.config, voice(11025, 22050, steady(c.hz), 0.5))
		if got := math.Exp(float64(pitch[len(pitch)/2])); math.Abs(got/c.want-1) > 0.005 {
			t.Errorf("%v Hz between %v and %v: %.2f Hz, want %v", c.hz, c.config.FMin, c.config.FMax, got, c.want)
		}
	}
}

// TestVoicingThreshold: a lower threshold makes uncertain frames unvoiced.
func TestVoicingThreshold(t *testing.T) {
	wave := recording(t)
	voiced := func(c Config) (n int) {
		pitch, _ := compute(t, base(), c, wave)
		for _, p := range pitch {
			if p != 0 {
				n++
			}
		}
		return n
	}
	sure, most := voiced(Config{Threshold: 0.15, VoicingThreshold: 0.15}), voiced(Config{})
	if sure == 0 || most <= sure {
		t.Errorf("%d frames of %d have a voice that is sure", sure, most)
	}
}

// recording returns the samples of testdata/voice.wav.
func recording(t testing.TB) []float32 {
	t.Helper()
	data, err := os.ReadFile("testdata/voice.wav")
	if err != nil {
		t.Fatal(err)
	}
	data = data[44:] // the minimal header of a WAV file
	wave := make([]float32, len(data)/2)
	for i := range wave {
		wave[i] = float32(int16(binary.LittleEndian.Uint16(data[2*i:]))) / 32768
	}
	return wave
}

// TestGolden compares the extractor with librosa for a recording: pitch in voiced frames, which librosa.yin does not
// decide, and energy in all frames.
func TestGolden(t *testing.T) {
	data, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		SampleRate  int     `json:"sample_rate"`
		HopLength   int     `json:"hop_length"`
		FrameLength int     `json:"frame_length"`
		FMin        float64 `json:"f_min"`
		FMax        float64 `json:"f_max"`
		Threshold   float64
		F0          []float64
		Energy      []struct {
			FrameLength int       `json:"frame_length"`
			PadMode     string    `json:"pad_mode"`
			LogRMS      []float64 `json:"log_rms"`
		}
	}
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	wave, f := recording(t), base()
	f.SampleRate, f.HopLength = golden.SampleRate, golden.HopLength
	pitch, _ := compute(t, f,
		Config{FMin: golden.FMin, FMax: golden.FMax, Threshold: golden.Threshold, FrameLength: golden.FrameLength},
		wave)
	if len(pitch) != len(golden.F0) {
		t.Fatalf("%d frames, want %d", len(pitch), len(golden.F0))
	}
	voiced := 0
	for i, p := range pitch {
		if p == 0 {
			continue
		}
		voiced++
		if hz := math.Exp(float64(p)); math.Abs(hz/golden.F0[i]-1) > 0.01 {
			t.Errorf("frame %d: %.2f Hz, librosa %.2f", i, hz, golden.F0[i])
		}
	}
	if voiced < len(pitch)/3 {
		t.Errorf("only %d of %d frames have a voice", voiced, len(pitch))
	}
	for _, g := range golden.Energy {
		f.PadMode = g.PadMode
		_, energy := compute(t, f, Config{FrameLength: g.FrameLength}, wave)
		for i, want := range g.LogRMS {
			if math.Abs(float64(energy[i])-want) > 1e-6 {
				t.Errorf("frames of %d, %s: energy %d is %v, librosa %v", g.FrameLength, g.PadMode, i, energy[i], want)
			}
		}
	}
}

// TestEnergy uses signals of known level.
func TestEnergy(t *testing.T) {
	for _, c := range []struct{ amplitude, want float64 }{
		{0, math.Log(1e-5)},
		{1e-6, math.Log(1e-5)},
		{0.5, math.Log(0.5 / math.Sqrt2)},
	} {
		_, energy := compute(t, base(), Config{FrameLength: 2205}, voice(11025, 22050, steady(100), c.amplitude))
		for i, got := range energy[5 : len(energy)-5] {
			if math.Abs(float64(got)-c.want) > 1e-4 {
				t.Errorf("amplitude %v: frame %d has %v, want %v", c.amplitude, i+5, got, c.want)
			}
		}
	}
}

// TestFramesAreNotCentred: a click is loudest in the frame whose centre is closest, also if frames are not centred.
func TestFramesAreNotCentred(t *testing.T) {
	f := base()
	f.Center = false
	wave := make([]float32, 8192)
	at := 10*256 + f.NFFT/2
	wave[at] = 1
	_, energy := compute(t, f, Config{FMin: 200, FrameLength: 255}, wave)
	if len(energy) != f.Frames(len(wave)) {
		t.Fatalf("%d frames", len(energy))
	}
	for i, e := range energy {
		if loud := e > float32(math.Log(2e-5)); loud != (i == 10) {
			t.Errorf("frame %d: energy %v", i, e)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		features func(*manifest.Features)
		config   Config
		want     string
	}{
		{func(f *manifest.Features) { f.HopLength = 0 }, Config{}, "features: hop_length is 0"},
		{
			func(f *manifest.Features) { f.SampleRate = 3000 }, Config{},
			"config: f_max 1000 Hz is above 750 Hz, a quarter of sample_rate 3000",
		},
		{nil, Config{FMin: 5}, "config: f_min is 5 Hz"},
		{nil, Config{FMin: math.NaN()}, "config: f_min is NaN Hz"},
		{nil, Config{FMin: 1000}, "config: f_min 1000 and f_max 1000 are not a valid band"},
		{nil, Config{Threshold: 1}, "config: threshold 1 is not between 0 and 1"},
		{nil, Config{Threshold: 0.5}, "config: voicing_threshold 0.4 is not between threshold 0.5 and 1"},
		{nil, Config{FrameLength: 679}, "config: frame_length 679 is less than two periods of f_min, 680 samples"},
	} {
		f := base()
		if c.features != nil {
			c.features(&f)
		}
		if _, err := New(f, c.config); err == nil || err.Error() != c.want {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestComputeRefuses(t *testing.T) {
	f := base()
	f.Center = false
	e, err := New(f, Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Compute(nil, nil, make([]float32, 1023)); !errors.Is(err, ErrTooShort) {
		t.Errorf("less than a window: %v", err)
	}
	if err := e.Compute(nil, nil, nil); err != nil {
		t.Errorf("no samples: %v", err)
	}
	wave := make([]float32, 2000)
	wave[1234] = float32(math.NaN())
	if err := e.Compute(nil, nil, wave); err == nil || !strings.Contains(err.Error(), "sample 1234 is NaN") {
		t.Errorf("not a number: %v", err)
	}
}

// TestComputeRepeats: earlier calls of an extractor change no bit.
func TestComputeRepeats(t *testing.T) {
	wave := recording(t)
	e, err := New(base(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	n := base().Frames(len(wave))
	run := func(wave []float32) ([]float32, []float32) {
		pitch, energy := make([]float32, n), make([]float32, n)
		if err := e.Compute(pitch, energy, wave); err != nil {
			t.Fatal(err)
		}
		return pitch, energy
	}
	pitch, energy := run(wave)
	run(voice(5000, 22050, steady(300), 0.9))
	again, energyAgain := run(wave)
	if !slices.Equal(pitch, again) || !slices.Equal(energy, energyAgain) {
		t.Error("the second time the bits are others")
	}
}

// TestComputeAllocates: Compute allocates nothing after its first call.
func TestComputeAllocates(t *testing.T) {
	e, err := New(base(), Config{})
	if err != nil {
		t.Fatal(err)
	}
	wave := recording(t)
	n := base().Frames(len(wave))
	pitch, energy := make([]float32, n), make([]float32, n)
	// The race detector makes sync.Pool drop values at random. One allocation per frame would be 87.
	if n := testing.AllocsPerRun(10, func() { e.Compute(pitch, energy, wave) }); n > 9 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkCompute reports seconds of audio per second on one core.
func BenchmarkCompute(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	wave := recording(b)
	for _, c := range []struct {
		name   string
		config Config
	}{{"defaults", Config{}}, {"frame_length 2048", Config{FrameLength: 2048}}} {
		b.Run(c.name, func(b *testing.B) {
			e, err := New(base(), c.config)
			if err != nil {
				b.Fatal(err)
			}
			n := base().Frames(len(wave))
			pitch, energy := make([]float32, n), make([]float32, n)
			for b.Loop() {
				if err := e.Compute(pitch, energy, wave); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(wave))/22050*float64(b.N)/b.Elapsed().Seconds(), "audio_s/s")
		})
	}
}
