package prosody

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/internal/batchtest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/pitch"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

func base() manifest.Features {
	return manifest.Features{
		SampleRate: 22050, NFFT: 1024, WinLength: 1024, HopLength: 256, Center: true, PadMode: "constant",
	}
}

func TestStageConforms(t *testing.T) {
	stagetest.Run(t, func() stage.Stage { return new(Stage) }, stagetest.Options{
		Manifest: "../plugin.json",
		Stage:    "prosody",
		Config:   `{"f_min": 80, "f_max": 500, "threshold": 0.1, "voicing_threshold": 0.5, "frame_length": 1024}`,
		Features: base(),
		Buckets: []manifest.Bucket{
			{"T_wav": 2000, "T_mel": 8}, {"T_wav": 4095, "T_mel": 16}, {"T_wav": 5000, "T_mel": 30},
		},
	})
}

// TestDefaults compares the program's defaults with those in plugin.json.
func TestDefaults(t *testing.T) {
	data, err := os.ReadFile("../plugin.json")
	if err != nil {
		t.Fatal(err)
	}
	p, err := manifest.ParsePlugin("plugin.json", data)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := p.Stage("prosody")
	stated := map[string]any{}
	for key, property := range s.Config["properties"].(map[string]any) {
		if value, ok := property.(map[string]any)["default"]; ok {
			stated[key] = value
		} else {
			stated[key] = 4 * 340.0 // the default of frame_length: four periods of 65 Hz at 22,050 Hz
		}
	}
	e, err := pitch.New(base(), pitch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if data, err = json.Marshal(e.Config()); err != nil {
		t.Fatal(err)
	}
	var used map[string]any
	if err := json.Unmarshal(data, &used); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(used, stated) {
		t.Errorf("the program's defaults are %v, plugin.json says %v", used, stated)
	}
}

// runner configures the stage for three rows.
func runner(t *testing.T, f manifest.Features, config string, samples, frames int) (*batchtest.Runner, error) {
	t.Helper()
	const rows = 3
	return batchtest.New(t, new(Stage), batchtest.Options{
		Features: f,
		Config:   config,
		Inputs: []ring.Tensor{
			{Name: waveform, DType: manifest.F32, Shape: []int{rows, samples}},
			{Name: waveformLengths, DType: manifest.I32, Shape: []int{rows}},
		},
		Outputs: []ring.Tensor{
			{Name: pitches, DType: manifest.F32, Shape: []int{rows, frames}},
			{Name: energies, DType: manifest.F32, Shape: []int{rows, frames}, Pad: -3},
			{Name: prosodyLengths, DType: manifest.I32, Shape: []int{rows}},
		},
	})
}

func TestStageRefuses(t *testing.T) {
	for _, c := range []struct {
		name, config    string
		rate            int
		samples, frames int
		want            string
	}{
		{"too few frames", "", 22050, 44032, 172, "bucket 0: pitch has room for 172 frames, but 44032 samples make " +
			"173\nhint: give the bucket at least 173 frames"},
		{"sample rate", "", 3000, 2560, 11, "f_max 1000 Hz is above 750 Hz"},
		{"band", `{"f_max": 50}`, 22050, 2560, 11, "f_min 65 and f_max 50 are not a valid band"},
		{"unknown key", `{"fmin": 50}`, 22050, 2560, 11, `unknown field "fmin"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := base()
			f.SampleRate = c.rate
			_, err := runner(t, f, c.config, c.samples, c.frames)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestStageRows processes a valid, an empty and an invalid row, with one worker and with several. The bits are the
// same.
func TestStageRows(t *testing.T) {
	const samples, frames = 12000, 50
	wave := make([]float32, samples-200)
	for i := range wave { // of rising pitch, and then nothing
		wave[i] = float32(0.3 * math.Sin(0.03*float64(i)*(1+float64(i)/20000)))
	}
	clear(wave[8000:10000])
	process := func(workers int) (*batchtest.Runner, *stagepb.Result) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		r, err := runner(t, base(), "", samples, frames)
		if err != nil {
			t.Fatal(err)
		}
		copy(r.Float32(waveform), wave)
		r.Float32(waveform)[2*samples+42] = float32(math.Inf(1))
		copy(r.Int32(waveformLengths), []int32{int32(len(wave)), 0, 100})
		return r, r.Process(t)
	}
	r, res := process(1)
	n := base().Frames(len(wave))
	if got, want := r.Int32(prosodyLengths), []int32{int32(n), 0, 0}; !slices.Equal(got, want) {
		t.Errorf("prosody_lengths %v, want %v", got, want)
	}
	if len(res.BadRows) != 1 || res.BadRows[0].Row != 2 || res.BadRows[0].Reason != "sample 42 is +Inf" ||
		res.Error != "" {
		t.Errorf("result %v", res)
	}
	wantPitch, wantEnergy := make([]float32, 3*frames), make([]float32, 3*frames)
	fill(wantEnergy, -3)
	e, err := pitch.New(base(), pitch.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Compute(wantPitch, wantEnergy, wave); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.Float32(pitches), wantPitch) || !slices.Equal(r.Float32(energies), wantEnergy) {
		t.Error("the rows are not the extractor's with padding")
	}
	many, _ := process(4)
	if !slices.Equal(r.Float32(pitches), many.Float32(pitches)) ||
		!slices.Equal(r.Float32(energies), many.Float32(energies)) {
		t.Error("four workers gave different bits than one")
	}
}
