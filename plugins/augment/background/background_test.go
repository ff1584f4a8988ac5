package background

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/effecttest"
)

func TestRules(t *testing.T) {
	effecttest.Rules(t, "background", New, defaults(), `{"count_min": 3, "count_max": 7, "snr_db_min": -10}`,
		`{"snr_db_min": -60, "snr_db_max": -60}`)
}

func folders(t testing.TB) map[string]string {
	return map[string]string{folder: effecttest.Folder(t, effecttest.Rate,
		effecttest.Noise(3000), effecttest.Sine(50000, 440, 0.1, effecttest.Rate), make([]float32, 800))}
}

// TestMixture: what is added is the drawn recording from the drawn sample on, at the drawn ratio, within 0.001 dB.
func TestMixture(t *testing.T) {
	recordings := map[string][]float32{
		"0.wav": effecttest.Noise(3000), "1.wav": effecttest.Sine(50000, 440, 0.1, effecttest.Rate),
		"2.wav": make([]float32, 800),
	}
	const n = 9000
	draws, out := effecttest.Draws(t, New(), effecttest.Options{Folders: folders(t)}, n, 20)
	clip := effecttest.Speech(n, effecttest.Rate)
	seen := map[string]bool{}
	for i, d := range draws {
		name := d["recording"].(string)
		seen[name] = true
		recording, from := recordings[name], int(d["from_sample"].(float64))
		var signal, added, product, power float64
		for k, x := range clip {
			r, noise := float64(recording[(from+k)%len(recording)]), float64(out[i][k])-float64(x)
			signal += float64(x) * float64(x)
			added += noise * noise
			product += noise * r
			power += r * r
		}
		if name == "2.wav" {
			if added != 0 {
				t.Error("a silent recording changed the row")
			}
			continue
		}
		// The recordings have 16 bits, so the correlation is just below 1.
		if correlation := product / math.Sqrt(added*power); correlation < 0.99999 {
			t.Errorf("%v: correlation %g with the recording", d, correlation)
		}
		if got, want := 10*math.Log10(signal/added), d["snr_db"].(float64); math.Abs(got-want) > 0.001 {
			t.Errorf("%v: measured %g dB", d, got)
		}
	}
	if len(seen) != 3 {
		t.Errorf("recordings %v", seen)
	}
}

// TestBabble: several recordings have the same power in the sum, which has the drawn ratio.
func TestBabble(t *testing.T) {
	a, b := effecttest.Sine(50000, 500, 0.5, effecttest.Rate), effecttest.Sine(50000, 3000, 0.01, effecttest.Rate)
	o := effecttest.Options{
		Config:  `{"count_min": 6, "count_max": 6, "snr_db_min": 0, "snr_db_max": 0}`,
		Folders: map[string]string{folder: effecttest.Folder(t, effecttest.Rate, a, b)},
	}
	clip := effecttest.Speech(9000, effecttest.Rate)
	both := false // that a row has a tenth of the noise's power at 3 kHz, and a tenth elsewhere
	for key := range 5 {
		out := effecttest.Must(t, New(), o).Apply(t, clip, key)
		var signal, noise, sin, cos float64
		for i, x := range clip {
			signal += float64(x) * float64(x)
			n := float64(out[i]) - float64(x)
			noise += n * n
			s, c := math.Sincos(2 * math.Pi * 3000 * float64(i) / effecttest.Rate)
			sin, cos = sin+n*s, cos+n*c
		}
		share := (sin*sin + cos*cos) * 2 / float64(len(clip)) / noise
		both = both || share > 0.1 && share < 0.9
		if db := 10 * math.Log10(signal/noise); math.Abs(db) > 0.001 {
			t.Errorf("key %d: %g dB, want 0", key, db)
		}
	}
	if !both {
		t.Error("no row has both recordings at the same power")
	}
}

// TestMemory: rows have the same bits when the recordings do not fit into the memory.
func TestMemory(t *testing.T) {
	long := effecttest.Speech(300_000, effecttest.Rate) // more than 1 MB
	data := map[string]string{folder: effecttest.Folder(t, 16000, long, effecttest.Noise(5000))}
	clip := effecttest.Speech(9000, effecttest.Rate)
	kept := effecttest.Must(t, New(), effecttest.Options{Folders: data})
	read := effecttest.Must(t, New(), effecttest.Options{Folders: data, Config: `{"memory_mb": 1}`})
	for key := range 10 {
		if !effecttest.SameBits(kept.Apply(t, clip, key), read.Apply(t, clip, key)) {
			t.Errorf("key %d: other bits when the recording is read from the file", key)
		}
	}
}

func TestRefuses(t *testing.T) {
	o := effecttest.Options{Folders: folders(t)}
	effecttest.Refuses(t, New, o, map[string]string{
		`{"snr_db_min": 50}`: "config: snr_db_min 50 is above snr_db_max 30\nhint: ",
		`{"count_min": 2}`:   "config: count_min 2 is above count_max 1",
	})
	effecttest.Refuses(t, New, effecttest.Options{}, map[string]string{
		"": "the data folder \"background\" of the stage is missing\n" +
			"hint: name it with --plugin-data test.background=DIR",
	})
	bad := t.TempDir()
	if err := os.WriteFile(filepath.Join(bad, "a.wav"), []byte("not a recording"), 0o666); err != nil {
		t.Fatal(err)
	}
	effecttest.Refuses(t, New, effecttest.Options{Folders: map[string]string{folder: bad}}, map[string]string{
		"": "no recording can be read\nhint: ",
	})
}
