package specaugment

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/augmenttest"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

func TestStageConforms(t *testing.T) {
	for name, config := range map[string]string{
		"defaults": "", "never": `{"probability": 0}`, "half": `{"probability": 0.5, "freq_masks": 5, "time_masks": 9, "time_warp": 80}`,
	} {
		t.Run(name, func(t *testing.T) {
			stagetest.Run(t, func() stage.Stage { return new(Stage) }, stagetest.Options{
				Manifest: "../plugin.json",
				Stage:    "specaugment",
				Config:   config,
				Buckets: []manifest.Bucket{
					{"T_mel": 40, "n_mels": bands}, {"T_mel": 173, "n_mels": bands}, {"T_mel": 5, "n_mels": bands},
				},
			})
		})
	}
}

func TestDefaults(t *testing.T) {
	augmenttest.CheckDefaults(t, augmenttest.Spec(t, "specaugment"), defaults())
}

const width = 120 // frames of the test's tensors

func runner(t testing.TB, config string) (*augmenttest.Runner, error) {
	return augmenttest.New(t, new(Stage),
		augmenttest.Options{Data: melSpectrograms, Lengths: melLengths, Shape: []int{width, bands}, Config: config})
}

func process(t testing.TB, config string, rows []augmenttest.Row) [][]float32 {
	t.Helper()
	r, err := runner(t, config)
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Process(t, rows)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func row(key byte, frames int) augmenttest.Row {
	return augmenttest.Row{Key: [stage.KeySize]byte{key}, Data: ones(frames, bands)}
}

// TestReports: the masks that the stage reports are those of the spectrogram.
func TestReports(t *testing.T) {
	r, err := runner(t, "")
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Process(t, []augmenttest.Row{{}, row(7, 90)})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		FreqMasks [][2]int `json:"freq_masks"`
		TimeMasks [][2]int `json:"time_masks"`
	}
	err = json.Unmarshal([]byte(r.Draws[1]), &got)
	if err != nil || len(got.FreqMasks) != 2 || len(got.TimeMasks) != 2 {
		t.Fatalf("%q: %v", r.Draws[1], err)
	}
	want := ones(90, bands)
	for i := range want {
		in := func(masks [][2]int, at int) bool {
			return slices.ContainsFunc(masks, func(m [2]int) bool { return m[0] <= at && at < m[1] })
		}
		if in(got.TimeMasks, i/bands) || in(got.FreqMasks, i%bands) {
			want[i] = augmenttest.Pad
		}
	}
	if !slices.Equal(out[1][:90*bands], want) || !slices.Contains(want, augmenttest.Pad) {
		t.Errorf("the masks are not those of the report %s", r.Draws[1])
	}
}

// TestRowsDoNotKnowTheirBatch: a row has the same bits at other places, among other rows and with other numbers of
// threads.
func TestRowsDoNotKnowTheirBatch(t *testing.T) {
	alone := process(t, "", []augmenttest.Row{row(7, 90)})[0]
	want := ones(90, bands)
	defaults().apply(want, bands, augmenttest.Pad, generator(7))
	if !slices.Equal(alone[:90*bands], want) || !slices.Contains(want, augmenttest.Pad) {
		t.Fatal("the row is not masked over its 90 frames, with the generator of its key")
	}
	for name, c := range map[string]struct {
		rows    []augmenttest.Row
		at      int
		workers int
	}{
		"second of two":      {[]augmenttest.Row{row(1, width), row(7, 90)}, 1, 2},
		"after an empty row": {[]augmenttest.Row{row(9, 10), {}, row(7, 90), row(3, 1)}, 2, 1},
		"with many threads": {
			[]augmenttest.Row{row(1, 50), row(2, 60), row(3, 70), row(7, 90), row(5, 119), row(6, 1)}, 3, 8,
		},
	} {
		old := runtime.GOMAXPROCS(c.workers)
		got := process(t, "", c.rows)
		runtime.GOMAXPROCS(old)
		if !slices.Equal(got[c.at], alone) {
			t.Errorf("%s: different bits than alone", name)
		}
	}
	if other := process(t, "", []augmenttest.Row{row(8, 90)})[0]; slices.Equal(other, alone) {
		t.Error("another key gave the same masks")
	}
}

func TestNeverIsTheIdentity(t *testing.T) {
	lengths := []int{width, 31, 0, 1}
	for _, config := range []string{`{"probability": 0}`, `{"freq_masks": 0, "time_masks": 0}`} {
		var rows []augmenttest.Row
		for key, n := range lengths {
			rows = append(rows, row(byte(key), n))
		}
		for i, got := range process(t, config, rows) {
			want := slices.Concat(ones(lengths[i], bands),
				slices.Repeat([]float32{augmenttest.Pad}, (width-lengths[i])*bands))
			if !slices.Equal(got, want) {
				t.Errorf("%s: row %d changed", config, i)
			}
		}
	}
}

func TestStageRefuses(t *testing.T) {
	for config, want := range map[string]string{
		`{"freq_mask_width": 81}`: "config: freq_mask_width 81 is more than the 80 bands of mel_spectrograms\nhint: ",
		`{"masks": 2}`:            `unknown field "masks"`,
	} {
		if _, err := runner(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
	}
}

// FuzzConfig: a configuration that satisfies the schema is either refused or stays within its bounds.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"probability": 0}`, `{"freq_mask_width": 80, "freq_masks": 100}`, `{"freq_mask_width": 81}`,
		`{"time_mask_width": 1048576, "time_mask_share": 1, "time_masks": 100}`, `{"time_masks": 1e1}`,
		`{"time_mask_share": 1e-320}`, `{"freq_masks": -1}`, `[]`,
	} {
		f.Add(seed)
	}
	declared := augmenttest.Spec(f, "specaugment")
	f.Fuzz(func(t *testing.T, config string) {
		var values map[string]any
		if json.Unmarshal([]byte(config), &values) != nil || manifest.ValidateConfig(declared, values) != nil {
			return
		}
		r, err := runner(t, config)
		if err != nil {
			return
		}
		lengths := []int{width, 0, 1}
		out, err := r.Process(t, []augmenttest.Row{row(1, lengths[0]), {}, row(3, lengths[2])})
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		for i, n := range lengths {
			for at, x := range out[i] {
				if x != augmenttest.Pad && (x != 1 || at >= n*bands) {
					t.Fatalf("%s: element %d of row %d is %v", config, at, i, x)
				}
			}
		}
	})
}
