package waveaug

import (
	"encoding/json"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/augmenttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/vector"
	rows "github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

const (
	everything = `{"gain_probability": 1, "noise_probability": 1, "polarity_probability": 1}`
	nothing    = `{"gain_probability": 0, "noise_probability": 0, "polarity_probability": 0}`
)

func TestStageConforms(t *testing.T) {
	for name, config := range map[string]string{"defaults": "", "everything": everything, "nothing": nothing} {
		t.Run(name, func(t *testing.T) {
			stagetest.Run(t, func() stage.Stage { return new(Stage) }, stagetest.Options{
				Manifest: "../plugin.json",
				Stage:    "waveaug",
				Config:   config,
				Buckets:  []manifest.Bucket{{"T_wav": 2000}, {"T_wav": 8191}},
			})
		})
	}
}

func TestDefaults(t *testing.T) {
	augmenttest.CheckDefaults(t, augmenttest.Spec(t, "waveaug"), defaults())
}

func runner(t testing.TB, config string) (*augmenttest.Runner, error) {
	return augmenttest.New(t, new(Stage),
		augmenttest.Options{Data: waveform, Lengths: waveformLengths, Shape: []int{3000}, Config: config})
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

func row(key byte, n int) augmenttest.Row {
	return augmenttest.Row{Key: [stage.KeySize]byte{key}, Data: tone(n)}
}

// TestLimit: a row whose peak would be above that of the port is scaled to it, and what it was before is what is
// reported.
func TestLimit(t *testing.T) {
	config := certain()
	config.GainDBMin, config.GainDBMax, config.SNRDBMin, config.SNRDBMax = 60, 60, -60, -60
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	r, err := runner(t, string(text))
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.Process(t, []augmenttest.Row{row(7, 2500)})
	if err != nil {
		t.Fatal(err)
	}
	want := tone(2500)
	if err := config.apply(want, generator(7)); err != nil {
		t.Fatal(err)
	}
	var draws struct {
		DB float64 `json:"limit_db"`
	}
	if err := json.Unmarshal([]byte(r.Draws[0]), &draws); err != nil {
		t.Fatal(err)
	}
	peak, before := float64(vector.Peak(out[0][:2500])), float64(vector.Peak(want))
	if peak > rows.MaxAbs || peak < rows.MaxAbs*(1-1e-6) ||
		math.Abs(draws.DB-20*math.Log10(rows.MaxAbs/before)) > 1e-5 {
		t.Errorf("a peak of %g, %g without a limit, reported %s", peak, before, r.Draws[0])
	}
	for _, port := range augmenttest.Spec(t, "waveaug").Outputs {
		if port.MaxAbs != rows.MaxAbs {
			t.Errorf("plugin.json has a max_abs of %g for %s, the program %d", port.MaxAbs, port.Name, rows.MaxAbs)
		}
	}
}

// TestRowsDoNotKnowTheirBatch: a row has the same bits at other places, among other rows and with other numbers of
// threads.
func TestRowsDoNotKnowTheirBatch(t *testing.T) {
	alone := process(t, everything, []augmenttest.Row{row(7, 2500)})[0]
	want := tone(2500)
	err := certain().apply(want, generator(7))
	if err != nil || !sameBits(alone[:2500], want) || sameBits(want, tone(2500)) {
		t.Fatalf("the row is not augmented over its 2500 samples, with the generator of its key (%v)", err)
	}
	for name, c := range map[string]struct {
		rows    []augmenttest.Row
		at      int
		workers int
	}{
		"second of two":      {[]augmenttest.Row{row(1, 3000), row(7, 2500)}, 1, 2},
		"after an empty row": {[]augmenttest.Row{row(9, 100), {}, row(7, 2500), row(3, 1)}, 2, 1},
		"with many threads": {
			[]augmenttest.Row{row(1, 50), row(2, 60), row(3, 70), row(7, 2500), row(5, 2900), row(6, 1)}, 3, 8,
		},
	} {
		old := runtime.GOMAXPROCS(c.workers)
		got := process(t, everything, c.rows)
		runtime.GOMAXPROCS(old)
		if !sameBits(got[c.at], alone) {
			t.Errorf("%s: different bits than alone", name)
		}
	}
	if other := process(t, everything, []augmenttest.Row{row(8, 2500)})[0]; sameBits(other, alone) {
		t.Error("another key gave the same bits")
	}
}

// TestReports: the stage reports what it has drawn and applied.
func TestReports(t *testing.T) {
	r, err := runner(t, "")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for key := range 20 {
		in := row(byte(key), 1000)
		out, err := r.Process(t, []augmenttest.Row{{}, in})
		if err != nil {
			t.Fatal(err)
		}
		got := struct {
			GainDB   *float64 `json:"gain_db"`
			SNRDB    *float64 `json:"snr_db"`
			Inverted *bool    `json:"inverted"`
		}{}
		if err := json.Unmarshal([]byte(r.Draws[1]), &got); err != nil || got.GainDB == nil || got.Inverted == nil {
			t.Fatalf("%q: %v", r.Draws[1], err)
		}
		factor := math.Pow(10, *got.GainDB/20)
		if *got.Inverted {
			factor = -factor
		}
		var signal, noise float64
		for i, x := range in.Data {
			signal += math.Pow(float64(x), 2)
			noise += math.Pow(float64(out[1][i])/factor-float64(x), 2)
		}
		if snr := 10 * math.Log10(signal/noise); got.SNRDB == nil && snr < 100 || got.SNRDB != nil &&
			math.Abs(snr-*got.SNRDB) > 0.1 {
			t.Errorf("key %d: %s, but the noise is at %g dB", key, r.Draws[1], snr)
		}
		for name, was := range map[string]bool{
			"a gain": *got.GainDB != 0, "none": *got.GainDB == 0,
			"noise": got.SNRDB != nil, "no noise": got.SNRDB == nil,
			"inverted": *got.Inverted, "upright": !*got.Inverted,
		} {
			seen[name] = seen[name] || was
		}
	}
	if len(seen) != 6 || slices.Contains(slices.Collect(maps.Values(seen)), false) {
		t.Error("the rows do not have all effects and none: ", seen)
	}
}

func TestNothingIsTheIdentity(t *testing.T) {
	rows := []augmenttest.Row{row(1, 3000), row(2, 1234), {}, row(4, 1)}
	rows[1].Data[5] = float32(math.Copysign(0, -1))
	for i, got := range process(t, nothing, rows) {
		want := slices.Concat(rows[i].Data, slices.Repeat([]float32{augmenttest.Pad}, 3000-len(rows[i].Data)))
		if !sameBits(got, want) {
			t.Errorf("row %d changed", i)
		}
	}
}

func TestStageRefuses(t *testing.T) {
	for config, want := range map[string]string{
		`{"gain_db_min": 7}`:  "config: gain_db_min 7 is above gain_db_max 6\nhint: ",
		`{"snr_db_max": -20}`: "config: snr_db_min 15 is above snr_db_max -20\nhint: ",
		`{"snr": 20}`:         `unknown field "snr"`,
	} {
		if _, err := runner(t, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
	}
	r, err := runner(t, "")
	if err != nil {
		t.Fatal(err)
	}
	bad := row(1, 10)
	bad.Data[3] = float32(math.NaN())
	_, err = r.Process(t, []augmenttest.Row{bad})
	if err == nil || !strings.Contains(err.Error(), "a sample is not finite") {
		t.Errorf("a row with a NaN: %v", err)
	}
}

// FuzzConfig: a configuration that satisfies the schema is either refused or never gives a sample that is not finite.
func FuzzConfig(f *testing.F) {
	for _, seed := range []string{
		everything, nothing, `{}`, `{"gain_db_min": 60, "gain_db_max": 60, "gain_probability": 1}`,
		`{"snr_db_min": -60, "snr_db_max": 100, "noise_probability": 1}`, `{"gain_db_min": 1e-320}`,
		`{"snr_db_min": 50}`, `[]`, `{"gain_db_max": null}`,
	} {
		f.Add(seed)
	}
	declared := augmenttest.Spec(f, "waveaug")
	f.Fuzz(func(t *testing.T, config string) {
		var values map[string]any
		if json.Unmarshal([]byte(config), &values) != nil || manifest.ValidateConfig(declared, values) != nil {
			return
		}
		r, err := runner(t, config)
		if err != nil {
			return
		}
		out, err := r.Process(t, []augmenttest.Row{row(1, 300), {}, row(3, 1)})
		if err != nil {
			t.Fatalf("%s: %v", config, err)
		}
		for i, valid := range []int{300, 0, 1} {
			for at, x := range out[i] {
				if x-x != 0 || at >= valid && x != augmenttest.Pad {
					t.Fatalf("%s: element %d of row %d is %v", config, at, i, x)
				}
			}
		}
	})
}
