package waveaug

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/augmenttest"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage/gpustagetest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func TestMain(m *testing.M) { os.Exit(gpustagetest.Run(m)) }

func onDevice(t testing.TB, config string, samples int) *augmenttest.Runner {
	t.Helper()
	open, device := gpustagetest.Open(t)
	r, err := augmenttest.New(t, &Stage{OpenGPU: open}, augmenttest.Options{
		Data: waveform, Lengths: waveformLengths, Shape: []int{samples}, Config: config, Device: device})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGPUAgreesWithCPU compares both devices. Without noise the bits are equal. With noise they agree to float32
// precision of the noise.
func TestGPUAgreesWithCPU(t *testing.T) {
	silent := row(6, 500)
	clear(silent.Data)
	negative := row(7, 1200)
	negative.Data[5] = float32(math.Copysign(0, -1))
	rows := []augmenttest.Row{row(1, 3000), row(2, 1234), {}, row(4, 1), row(5, 2), silent, negative}
	for config, tolerance := range map[string]float64{
		nothing: 0, `{"noise_probability": 0}`: 0, everything: 3e-7, "": 3e-7,
		`{"noise_probability": 1, "snr_db_min": -60, "snr_db_max": -60, "gain_db_min": 60, "gain_db_max": 60}`: 0.3,
	} {
		want, r := process(t, config, rows), onDevice(t, config, 3000)
		for range 2 {
			got, err := r.Process(t, rows)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				for k := range want[i] {
					x, y := want[i][k], got[i][k]
					if math.Float32bits(x) != math.Float32bits(y) && !(math.Abs(float64(x-y)) <= tolerance) {
						t.Fatalf("%s: sample %d of row %d is %v on the CPU, %v on the GPU", config, k, i, x, y)
					}
				}
			}
		}
	}
}

func TestGPURejects(t *testing.T) {
	r := onDevice(t, everything, 100)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		broken := row(1, 10)
		broken.Data[3] = float32(bad)
		_, err := r.Process(t, []augmenttest.Row{row(2, 100), broken})
		// protobuf varies its white space
		text := strings.Join(strings.Fields(fmt.Sprint(err)), " ")
		if !strings.Contains(text, `row:1 reason:"a sample is not finite"`) {
			t.Errorf("a row with %v: %v", bad, err)
		}
	}
}

func TestStageConformsOnGPU(t *testing.T) {
	open, device := gpustagetest.Open(t)
	stagetest.Run(t, func() stage.Stage { return &Stage{OpenGPU: open} }, stagetest.Options{
		Manifest: "../plugin.json", Stage: "waveaug", Config: everything, Device: device,
		Buckets: []manifest.Bucket{{"T_wav": 300}, {"T_wav": 191}},
	})
}

// BenchmarkWaveaug processes a batch of 8 rows of 6 s with noise, from the ring and back.
func BenchmarkWaveaug(b *testing.B) {
	const samples = 132300
	rows := slices.Repeat([]augmenttest.Row{row(1, samples)}, 8)
	b.Run("cpu", func(b *testing.B) {
		r, err := augmenttest.New(b, new(Stage),
			augmenttest.Options{Data: waveform, Lengths: waveformLengths, Shape: []int{samples}, Config: everything})
		if err != nil {
			b.Fatal(err)
		}
		benchmark(b, r, rows)
	})
	b.Run("gpu", func(b *testing.B) { benchmark(b, onDevice(b, everything, samples), rows) })
}

func benchmark(b *testing.B, r *augmenttest.Runner, rows []augmenttest.Row) {
	for b.Loop() {
		if _, err := r.Process(b, rows); err != nil {
			b.Fatal(err)
		}
	}
}
