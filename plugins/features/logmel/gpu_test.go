package logmel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/internal/batchtest"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage/gpustagetest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel/meltest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func TestMain(m *testing.M) { os.Exit(gpustagetest.Run(m)) }

// onDevice configures the stage for the test's GPU.
func onDevice(t testing.TB, f manifest.Features, rows, samples, frames int) *batchtest.Runner {
	t.Helper()
	open, device := gpustagetest.Open(t)
	r, err := runnerOf(t, &Stage{OpenGPU: open}, device, f, rows, samples, frames, f.NMels)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// small is a contract with small tables.
func small() manifest.Features {
	f := meltest.Base()
	f.NFFT, f.WinLength, f.HopLength, f.NMels = 256, 256, 64, 20
	return f
}

// TestGoldenOnGPU compares the graph with the extractor's golden numbers, with the same tolerance: the graph is float64
// too.
func TestGoldenOnGPU(t *testing.T) {
	for _, c := range meltest.Cases(t) {
		t.Run(c.Name, func(t *testing.T) {
			r := onDevice(t, c.Features, 1, c.Samples, c.Frames)
			copy(r.Float32(waveform), meltest.Signal(c.Samples))
			r.Int32(waveformLengths)[0] = int32(c.Samples)
			res := r.Process(t)
			if res.Error != "" || len(res.BadRows) > 0 || r.Int32(melLengths)[0] != int32(c.Frames) {
				t.Fatalf("%d frames, want %d: %v", r.Int32(melLengths)[0], c.Frames, res)
			}
			if worst := c.Apart(r.Float32(melSpectrograms)); !(worst <= 1e-5) {
				t.Errorf("up to %g away from the golden values", worst)
			}
		})
	}
}

// TestGPUAgreesWithCPU compares both devices for rows of every kind: lengths, rejected rows and their reasons are
// equal, values are close.
func TestGPUAgreesWithCPU(t *testing.T) {
	const samples, frames = 1001, 20
	lengths := []int32{1001, 0, 1, 2, 63, 64, 127, 129, 255, 256, 800, 999}
	for name, change := range map[string]func(*manifest.Features){
		"constant":    func(*manifest.Features) {},
		"reflect":     func(f *manifest.Features) { f.PadMode, f.Power, f.Log = "reflect", 2, "log10" },
		"not centred": func(f *manifest.Features) { f.Center, f.WinLength, f.HopLength = false, 151, 50 },
	} {
		t.Run(name, func(t *testing.T) {
			f := small()
			change(&f)
			var mels [2][]float32
			var counts [2][]int32
			var reasons [2]string
			for i, r := range []*batchtest.Runner{
				must(runnerOf(t, new(Stage), "", f, len(lengths), samples, frames, f.NMels)),
				onDevice(t, f, len(lengths), samples, frames),
			} {
				wave := r.Float32(waveform)
				for k := range wave { // the content after a row's length is undefined
					wave[k] = float32(math.NaN())
				}
				for row, n := range lengths {
					copy(wave[row*samples:], meltest.Signal(int(n)))
				}
				wave[10*samples+799], wave[11*samples+1] = float32(math.Inf(-1)), float32(math.NaN())
				copy(r.Int32(waveformLengths), lengths)
				res := r.Process(t)
				if res.Error != "" {
					t.Fatal(res.Error)
				}
				mels[i], counts[i], reasons[i] = r.Float32(melSpectrograms), r.Int32(melLengths),
					fmt.Sprint(res.BadRows)
			}
			if !slices.Equal(counts[0], counts[1]) || reasons[0] != reasons[1] {
				t.Errorf("lengths %v on the CPU, %v on the GPU; rejected %v and %v", counts[0], counts[1], reasons[0],
					reasons[1])
			}
			for k, want := range mels[0] {
				if got := mels[1][k]; !(math.Abs(float64(got-want)) <= 2e-6) {
					t.Fatalf("value %d of row %d is %v on the CPU, %v on the GPU", k%(frames*f.NMels),
						k/(frames*f.NMels), want, got)
				}
			}
		})
	}
}

func must(r *batchtest.Runner, err error) *batchtest.Runner {
	if err != nil {
		panic(err)
	}
	return r
}

func TestStageConformsOnGPU(t *testing.T) {
	open, device := gpustagetest.Open(t)
	stagetest.Run(t, func() stage.Stage { return &Stage{OpenGPU: open} }, stagetest.Options{
		Manifest: "../plugin.json", Stage: "logmel", Features: small(), Device: device,
		Buckets: []manifest.Bucket{{"T_wav": 500, "T_mel": 8, "n_mels": 20}, {"T_wav": 751, "T_mel": 14, "n_mels": 20}},
	})
}

// TestGPUInParts computes more frames than fit in one part.
func TestGPUInParts(t *testing.T) {
	const rows, samples, frames = 3, 128, 3
	part := func(together int) []float32 {
		defer func(n int) { framesTogether = n }(framesTogether)
		framesTogether = together
		r := onDevice(t, small(), rows, samples, frames)
		for row := range rows {
			copy(r.Float32(waveform)[row*samples:], meltest.Signal(samples-row))
			r.Int32(waveformLengths)[row] = int32(samples - row)
		}
		if res := r.Process(t); res.Error != "" {
			t.Fatal(res.Error)
		}
		return r.Float32(melSpectrograms)
	}
	if whole, parts := part(9), part(6); !slices.Equal(whole, parts) {
		t.Error("rows have different bits when two are computed at a time")
	}
}

// BenchmarkLogmelGPU processes a batch of 16 rows of 500 frames, from the ring and back. It needs a GPU: on a fake one
// it measures the CPU.
func BenchmarkLogmelGPU(b *testing.B) {
	const rows, frames, samples = 16, 500, 499 * 256
	r := onDevice(b, meltest.Base(), rows, samples, frames)
	for i := range r.Float32(waveform) {
		r.Float32(waveform)[i] = rand.Float32() - 0.5
	}
	for row := range rows {
		r.Int32(waveformLengths)[row] = samples
	}
	for b.Loop() {
		if res := r.Process(b); res.Error != "" {
			b.Fatal(res.Error)
		}
	}
}
