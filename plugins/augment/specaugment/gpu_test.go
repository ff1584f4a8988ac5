package specaugment

import (
	"os"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/augmenttest"
	"github.com/xtts-host/xtts-host/plugins/internal/gpustage/gpustagetest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func TestMain(m *testing.M) { os.Exit(gpustagetest.Run(m)) }

func onDevice(t testing.TB, config string, frames int) *augmenttest.Runner {
	t.Helper()
	open, device := gpustagetest.Open(t)
	r, err := augmenttest.New(t, &Stage{OpenGPU: open}, augmenttest.Options{
		Data: melSpectrograms, Lengths: melLengths, Shape: []int{frames, bands}, Config: config, Device: device})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestGPUMasksTheSame: CPU and GPU give the same bits.
func TestGPUMasksTheSame(t *testing.T) {
	for _, config := range []string{"", `{"probability": 0.5, "freq_masks": 5, "time_masks": 9}`} {
		var rows []augmenttest.Row
		for key, n := range []int{width, 90, 0, 1, 17, 119} {
			rows = append(rows, row(byte(key), n))
		}
		want, r := process(t, config, rows), onDevice(t, config, width)
		for range 2 { // the second batch may use a lane with the flags of the first batch, or another lane
			got, err := r.Process(t, rows)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				if !slices.Equal(got[i], want[i]) {
					t.Errorf("%s: row %d is masked otherwise than on the CPU", config, i)
				}
			}
		}
	}
}

func TestStageConformsOnGPU(t *testing.T) {
	open, device := gpustagetest.Open(t)
	stagetest.Run(t, func() stage.Stage { return &Stage{OpenGPU: open} }, stagetest.Options{
		Manifest: "../plugin.json", Stage: "specaugment", Device: device,
		Buckets: []manifest.Bucket{{"T_mel": 40, "n_mels": bands}, {"T_mel": 17, "n_mels": bands}},
	})
}

// BenchmarkSpecaugment processes a batch of 8 rows of 500 frames, from the ring and back.
func BenchmarkSpecaugment(b *testing.B) {
	rows := slices.Repeat([]augmenttest.Row{row(1, 500)}, 8)
	b.Run("cpu", func(b *testing.B) {
		r, err := augmenttest.New(b, new(Stage),
			augmenttest.Options{Data: melSpectrograms, Lengths: melLengths, Shape: []int{500, bands}})
		if err != nil {
			b.Fatal(err)
		}
		benchmark(b, r, rows)
	})
	b.Run("gpu", func(b *testing.B) { benchmark(b, onDevice(b, "", 500), rows) })
}

func benchmark(b *testing.B, r *augmenttest.Runner, rows []augmenttest.Row) {
	for b.Loop() {
		if _, err := r.Process(b, rows); err != nil {
			b.Fatal(err)
		}
	}
}
