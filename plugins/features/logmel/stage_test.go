package logmel

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/internal/batchtest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/mel"
	"github.com/xtts-host/xtts-host/shared/mel/meltest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

func TestStageConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(Stage) }, stagetest.Options{
		Manifest: "../plugin.json",
		Stage:    "logmel",
		Features: meltest.Base(),
		Buckets: []manifest.Bucket{
			{"T_wav": 2000, "T_mel": 8, "n_mels": 80},
			{"T_wav": 8191, "T_mel": 32, "n_mels": 80},
			{"T_wav": 9000, "T_mel": 50, "n_mels": 80},
		},
	})
}

// runner configures the stage for three rows.
func runner(t *testing.T, f manifest.Features, samples, frames, bands int) (*batchtest.Runner, error) {
	t.Helper()
	const rows = 3
	return runnerOf(t, new(Stage), "", f, rows, samples, frames, bands)
}

// runnerOf configures a stage for a device.
func runnerOf(
	t testing.TB, s *Stage, device string, f manifest.Features, rows, samples, frames, bands int,
) (*batchtest.Runner, error) {
	t.Helper()
	return batchtest.New(t, s, batchtest.Options{
		Features: f, Device: device,
		Inputs: []ring.Tensor{
			{Name: waveform, DType: manifest.F32, Shape: []int{rows, samples}},
			{Name: waveformLengths, DType: manifest.I32, Shape: []int{rows}},
		},
		Outputs: []ring.Tensor{
			{Name: melSpectrograms, DType: manifest.F32, Shape: []int{rows, frames, bands}, Pad: -3},
			{Name: melLengths, DType: manifest.I32, Shape: []int{rows}},
		},
	})
}

func TestStageRefuses(t *testing.T) {
	for _, c := range []struct {
		name                   string
		change                 func(*manifest.Features)
		samples, frames, bands int
		want                   string
	}{
		{"too few frames", nil, 44032, 172, 80, "bucket 0: mel_spectrograms has room for 172 frames, but 44032 " +
			"samples make 173\nhint: give the bucket at least 173 frames"},
		{
			"other bands", nil, 2560, 11, 100,
			"bucket 0: mel_spectrograms has 100 bands, the feature contract n_mels = 80",
		},
		{"contract", func(f *manifest.Features) { f.FMax = 12000 }, 2560, 11, 80, "f_max 12000 Hz is above 11025 Hz"},
		{"silent band", func(f *manifest.Features) { f.NMels = 400 }, 2560, 11, 400, "contains no FFT bin"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := meltest.Base()
			if c.change != nil {
				c.change(&f)
			}
			_, err := runner(t, f, c.samples, c.frames, c.bands)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestStageRows processes a valid, an empty and an invalid row, with one worker and with several. The bits are the
// same.
func TestStageRows(t *testing.T) {
	const samples, frames = 3000, 20
	process := func(workers int) ([]float32, []int32, *stagepb.Result) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		r, err := runner(t, meltest.Base(), samples, frames, 80)
		if err != nil {
			t.Fatal(err)
		}
		copy(r.Float32(waveform), meltest.Signal(2500))
		copy(r.Float32(waveform)[2*samples:], meltest.Signal(100))
		r.Float32(waveform)[2*samples+42] = float32(math.Inf(1))
		copy(r.Int32(waveformLengths), []int32{2500, 0, 100})
		res := r.Process(t)
		return slices.Clone(r.Float32(melSpectrograms)), slices.Clone(r.Int32(melLengths)), res
	}
	got, lengths, res := process(1)
	if want := []int32{10, 0, 0}; !slices.Equal(lengths, want) {
		t.Errorf("mel_lengths %v, want %v", lengths, want)
	}
	if len(res.BadRows) != 1 || res.BadRows[0].Row != 2 || res.BadRows[0].Reason != "sample 42 is +Inf" ||
		res.Error != "" {
		t.Errorf("result %v", res)
	}
	e, err := mel.New(meltest.Base())
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, 3*frames*80)
	for i := range want {
		want[i] = -3
	}
	if err := e.Compute(want, meltest.Signal(2500)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got, want) {
		t.Error("the rows are not the extractor's with padding")
	}
	if many, _, _ := process(4); !slices.Equal(got, many) {
		t.Error("four workers gave different bits than one")
	}
}
