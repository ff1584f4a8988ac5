package mel

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel/meltest"
)

// TestGolden compares the extractor with librosa in float64. The contract allows an implementation 1e-4 (power) or 1e-3
// (magnitude) in ln. float64 is limited only by the seven digits of the file and the float32 of the result.
func TestGolden(t *testing.T) {
	for _, c := range meltest.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			e, err := New(c.Features)
			if err != nil {
				t.Fatal(err)
			}
			if n := c.Features.Frames(c.Samples); n != c.Frames {
				t.Fatalf("%d frames, want %d", n, c.Frames)
			}
			mel := make([]float32, c.Frames*c.Features.NMels)
			if err := e.Compute(mel, meltest.Signal(c.Samples)); err != nil {
				t.Fatal(err)
			}
			if worst := c.Apart(mel); !(worst <= 1e-5) {
				t.Errorf("%d values, up to %g away from %d golden ones", len(mel), worst, len(c.LogMel))
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*manifest.Features)
		want   string
	}{
		{func(f *manifest.Features) { f.SampleRate = 0 }, "sample_rate is 0"},
		{
			func(f *manifest.Features) { f.SampleRate = 16000 },
			"f_max 11025 Hz is above 8000 Hz, half of sample_rate 16000",
		},
		{func(f *manifest.Features) { f.FMin = 11025 }, "f_min 11025 and f_max 11025 are not a valid band"},
		{func(f *manifest.Features) { f.FMin = math.NaN() }, "f_min NaN"},
		{func(f *manifest.Features) { f.NFFT = 1023; f.WinLength = 512 }, "n_fft is 1023"},
		{func(f *manifest.Features) { f.WinLength = 2048 }, "win_length 2048 is not between 1 and n_fft (1024)"},
		{func(f *manifest.Features) { f.HopLength = 0 }, "hop_length is 0"},
		{func(f *manifest.Features) { f.Window = "hamming" }, `window "hamming" is unknown`},
		{func(f *manifest.Features) { f.PadMode = "edge" }, `pad_mode "edge" is unknown`},
		{func(f *manifest.Features) { f.Power = 1.5 }, "power is 1.5"},
		{func(f *manifest.Features) { f.NMels = 0 }, "n_mels is 0"},
		{func(f *manifest.Features) { f.MelScale = "bark" }, `mel_scale "bark" is unknown`},
		{func(f *manifest.Features) { f.MelNorm = "l2" }, `mel_norm "l2" is unknown`},
		{func(f *manifest.Features) { f.Log = "log2" }, `log "log2" is unknown`},
		{func(f *manifest.Features) { f.LogFloor = 0 }, "log_floor is 0"},
		{func(f *manifest.Features) { f.Normalization = &manifest.Normalization{Mean: 1} }, "normalization.std is 0"},
		{
			func(f *manifest.Features) { f.NFFT = 256; f.WinLength = 256 },
			"mel band 0 of 80 (0.0 to 82.2 Hz) contains no FFT bin: n_fft 256 at 22050 Hz has one every 86.1 Hz",
		},
	} {
		f := meltest.Base()
		c.change(&f)
		_, err := New(f)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestComputeRefuses(t *testing.T) {
	e, err := New(meltest.Base())
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		wave := meltest.Signal(2000)
		wave[1234] = float32(bad)
		err := e.Compute(make([]float32, 8*80), wave)
		if err == nil || !strings.Contains(err.Error(), "sample 1234 is ") {
			t.Errorf("a sample of %v: %v", bad, err)
		}
	}
	f := meltest.Base()
	f.Center = false
	if e, err = New(f); err != nil {
		t.Fatal(err)
	}
	if err := e.Compute(nil, meltest.Signal(1023)); !errors.Is(err, ErrTooShort) {
		t.Errorf("less than a window: %v", err)
	}
	if err := e.Compute(nil, nil); err != nil {
		t.Errorf("no samples: %v", err)
	}
}

// TestComputeAllocates: the memory of Compute does not grow with the waveform.
func TestComputeAllocates(t *testing.T) {
	e, err := New(meltest.Base())
	if err != nil {
		t.Fatal(err)
	}
	wave := meltest.Signal(22050)
	mel := make([]float32, meltest.Base().Frames(len(wave))*80)
	// The race detector makes sync.Pool drop values at random. One allocation per frame would be 87.
	if n := testing.AllocsPerRun(20, func() { e.Compute(mel, wave) }); n > 8 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkCompute reports seconds of audio per second on one core.
func BenchmarkCompute(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, c := range []struct {
		name   string
		change func(*manifest.Features)
	}{
		{"xtts", func(*manifest.Features) {}},
		{"power", func(f *manifest.Features) { f.Power = 2 }},
		{"n_fft 400", func(f *manifest.Features) {
			f.SampleRate, f.NFFT, f.WinLength, f.HopLength, f.NMels, f.FMax = 16000, 400, 400, 160, 40, 8000
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			f := meltest.Base()
			c.change(&f)
			e, err := New(f)
			if err != nil {
				b.Fatal(err)
			}
			wave := meltest.Signal(5 * f.SampleRate)
			mel := make([]float32, f.Frames(len(wave))*f.NMels)
			for b.Loop() {
				if err := e.Compute(mel, wave); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(5*float64(b.N)/b.Elapsed().Seconds(), "audio_s/s")
		})
	}
}
