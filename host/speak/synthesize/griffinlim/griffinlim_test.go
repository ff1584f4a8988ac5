package griffinlim

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel"
	"github.com/xtts-host/xtts-host/shared/mel/meltest"
)

// voice returns a second of speech.
func voice(t testing.TB) []float32 {
	t.Helper()
	data, err := os.ReadFile("../../../../shared/pitch/testdata/voice.wav")
	if err != nil {
		t.Fatal(err)
	}
	data = data[44:]
	wave := make([]float32, len(data)/2)
	for i := range wave {
		wave[i] = float32(int16(binary.LittleEndian.Uint16(data[2*i:]))) / 32768
	}
	return wave
}

func spectrogram(t testing.TB, f manifest.Features, wave []float32) []float32 {
	t.Helper()
	e, err := mel.New(f)
	if err != nil {
		t.Fatal(err)
	}
	frames := make([]float32, f.Frames(len(wave))*f.NMels)
	if err := e.Compute(frames, wave); err != nil {
		t.Fatal(err)
	}
	return frames
}

func vocoder(t testing.TB, f manifest.Features, c Config) *Vocoder {
	t.Helper()
	v, err := New(f, c)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// inconsistency is the distance of the magnitudes of a waveform from those that it was made of, as a part of these: the
// spectral convergence of the literature.
func inconsistency(v *Vocoder, frames, wave []float32) float64 {
	n, bins := v.features.NFFT, v.features.NFFT/2+1
	cutter, window := v.mel.Cutter(), v.mel.Tables().Window
	transform, scratch := v.plan.Transform(), v.bands.scratch()
	want, spectrum, frame := make([]float64, bins), make([]complex128, bins), make([]float64, n)
	var error, all float64
	for t := range len(frames) / v.features.NMels {
		v.bands.magnitudes(want, frames[t*v.features.NMels:][:v.features.NMels], scratch)
		for i, x := range cutter.Cut(t, wave, make([]float32, n)) {
			frame[i] = float64(x) * window[i]
		}
		transform.Spectrum(spectrum, frame)
		for k, x := range spectrum {
			d := math.Hypot(real(x), imag(x)) - want[k]
			error, all = error+d*d, all+want[k]*want[k]
		}
	}
	return math.Sqrt(error / all)
}

// TestBack: the spectrogram of a waveform that was made of the spectrogram of speech is near to it.
func TestBack(t *testing.T) {
	for name, change := range map[string]func(*manifest.Features){
		"as MyXTTS": func(f *manifest.Features) {
			f.Normalization = &manifest.Normalization{Mean: -5.6, Std: 2.8}
		},
		"power, reflect": func(f *manifest.Features) {
			f.Power, f.PadMode, f.Log, f.LogFloor = 2, "reflect", "log10", 1e-10
		},
		"not centred": func(f *manifest.Features) { f.Center, f.WinLength = false, 800 },
		"400 samples, htk without norm": func(f *manifest.Features) {
			f.NFFT, f.WinLength, f.HopLength, f.NMels, f.MelScale, f.MelNorm, f.FMin = 500, 400, 100, 40, "htk", "none",
				60
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := meltest.Base()
			change(&f)
			wave := voice(t)
			frames := spectrogram(t, f, wave)
			v := vocoder(t, f, Config{Iterations: 60, Momentum: 0.99, Threads: 2})
			made, err := v.Waveform(context.Background(), frames, 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			n := f.Frames(len(made))
			if n != len(frames)/f.NMels || len(made) > len(wave) || len(wave)-len(made) >= f.HopLength {
				t.Fatalf("%d samples of %d frames of %d samples", len(made), len(frames)/f.NMels, len(wave))
			}
			again := spectrogram(t, f, made)
			sum := 0.0
			for i := range frames {
				sum += math.Abs(float64(again[i]-frames[i])) / math.Abs(v.mel.Tables().Scale)
			}
			near, converged := sum/float64(len(frames)), inconsistency(v, frames, made)
			t.Logf("log-mel values differ by %.3f on the mean (in ln), spectral convergence %.3f (%.1f dB)", near,
				converged, 20*math.Log10(converged))
			if near > 0.5 || converged > 0.5 {
				t.Errorf("too far")
			}
		})
	}
}

// TestMomentum: the magnitudes are nearer after more rounds, and with momentum.
func TestMomentum(t *testing.T) {
	f := meltest.Base()
	frames := spectrogram(t, f, voice(t))
	after := func(iterations int, momentum float64) float64 {
		v := vocoder(t, f, Config{Iterations: iterations, Momentum: momentum, Threads: 2})
		wave, err := v.Waveform(context.Background(), frames, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		return inconsistency(v, frames, wave)
	}
	none, few, plain, fast := after(0, 0), after(10, 0.99), after(60, 0), after(60, 0.99)
	t.Logf("spectral convergence: first phases %.3f, 10 iterations %.3f, 60 %.3f, without momentum %.3f", none, few,
		fast, plain)
	if !(fast < few && few < none && fast < plain && plain < none) {
		t.Error("not in this order")
	}
}

// TestBands: the magnitudes of a frame have its bands.
func TestBands(t *testing.T) {
	for _, c := range meltest.Cases(t) {
		if c.Samples == 1 {
			continue // a line in one bin: the bands around it become small more slowly
		}
		e, err := mel.New(c.Features)
		if err != nil {
			t.Fatal(err)
		}
		b := newBands(e)
		scratch := b.scratch()
		frames := spectrogram(t, c.Features, meltest.Signal(c.Samples))
		bins, worst, all := make([]float64, c.Features.NFFT/2+1), 0.0, 0.0
		for at := 0; at < len(frames); at += c.Features.NMels {
			frame := frames[at:][:c.Features.NMels]
			b.magnitudes(bins, frame, scratch)
			for i, band := range b.Bands {
				sum := 0.0
				for k, w := range band.Weights {
					sum += w * math.Pow(bins[band.First+k], c.Features.Power)
				}
				apart := math.Abs(math.Log(math.Max(sum, c.Features.LogFloor)) - (float64(frame[i])-b.Shift)/b.Scale)
				worst, all = max(worst, apart), all+apart/float64(len(frames))
			}
		}
		t.Logf("%s: bands differ by %.4f on the mean, and by up to %.4f (in ln)", c.Name, all, worst)
		if all > 0.01 {
			t.Errorf("%s: too far", c.Name)
		}
	}
}

func TestEqualSeedsGiveEqualBits(t *testing.T) {
	f := meltest.Base()
	frames := spectrogram(t, f, voice(t)[:8000])
	made := func(threads int, seed, sequence uint64) []float32 {
		wave, err := vocoder(t, f, Config{Iterations: 3, Momentum: 0.99, Threads: threads}).Waveform(
			context.Background(), frames, seed, sequence)
		if err != nil {
			t.Fatal(err)
		}
		return wave
	}
	one := made(1, 5, 0)
	if !slices.Equal(one, made(7, 5, 0)) {
		t.Error("seven threads gave other bits than one")
	}
	if slices.Equal(one, made(1, 6, 0)) || slices.Equal(one, made(1, 5, 1)) {
		t.Error("another seed or sequence changed nothing")
	}
}

// TestExtremes: no frame and one frame, values beyond full scale, and values that are no numbers.
func TestExtremes(t *testing.T) {
	reflected := meltest.Base()
	reflected.PadMode = "reflect"
	v := vocoder(t, meltest.Base(), Config{Iterations: 2, Momentum: 0.99, Threads: 4})
	for _, v := range []*Vocoder{v, vocoder(t, reflected, v.Config)} {
		for frames := range 3 {
			wave, err := v.Waveform(context.Background(), slices.Repeat([]float32{3e38}, 80*frames), 0, 0)
			if err != nil || len(wave) != max(0, frames-1)*256 {
				t.Errorf("%d frames: %d samples, %v", frames, len(wave), err)
			}
			for _, x := range wave {
				if x-x != 0 {
					t.Fatalf("a sample is %v", x)
				}
			}
		}
	}
	bad := make([]float32, 160)
	bad[83] = float32(math.NaN())
	if _, err := v.Waveform(context.Background(), bad, 0, 0); err == nil ||
		!strings.Contains(err.Error(), "value 3 of frame 1 is NaN") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(os.ErrDeadlineExceeded)
	if _, err := v.Waveform(ctx, make([]float32, 160), 0, 0); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
}

// BenchmarkWaveform reports seconds of audio per second on one thread.
func BenchmarkWaveform(b *testing.B) {
	f := meltest.Base()
	wave := voice(b)
	frames := spectrogram(b, f, wave)
	v := vocoder(b, f, Config{Iterations: 60, Momentum: 0.99, Threads: 1})
	for b.Loop() {
		if _, err := v.Waveform(context.Background(), frames, 1, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(f.Seconds(len(wave))*float64(b.N)/b.Elapsed().Seconds(), "audio_s/s")
}
