// Package effecttest tests the stages of waveforms (package waveform): the rules that all of them keep, and the numbers
// that one of them computes for a row:
//
//	e, err := effecttest.Configure(t, New(), effecttest.Options{Config: `{"gain_db_min": 6, "gain_db_max": 6}`})
//	...
//	out := e.Apply(t, clip, 1)
//
// Golden reads the numbers of other programs, which testdata/make_golden.py of the plugin wrote.
package effecttest

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/augmenttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/wav"
)

// Rate is the sample rate of tests that name none, in Hz.
const Rate = 22050

// Options describes an instance.
type Options struct {
	Config  string // a JSON object, or empty
	Rate    int    // in Hz; 0 is Rate
	Width   int    // samples that a row has room for; 0 is 131072
	Folders map[string]string
}

// Effect is a configured stage of waveforms.
type Effect struct {
	Stage *waveform.Stage
	width int
}

// Configure configures a stage, a *waveform.Stage. The error is that of its Configure.
func Configure(t testing.TB, s stage.Stage, o Options) (*Effect, error) {
	t.Helper()
	e := &Effect{Stage: s.(*waveform.Stage), width: o.Width}
	if o.Rate == 0 {
		o.Rate = Rate
	}
	if e.width == 0 {
		e.width = 1 << 17
	}
	_, err := augmenttest.New(t, s, options(e, o))
	return e, err
}

func options(e *Effect, o Options) augmenttest.Options {
	return augmenttest.Options{Data: waveform.Port, Lengths: waveform.Lengths, Shape: []int{e.width}, Config: o.Config,
		Rate: o.Rate, Folders: o.Folders, Resizes: e.Stage.Resizes}
}

// Must is Configure for a configuration that is accepted.
func Must(t testing.TB, s stage.Stage, o Options) *Effect {
	t.Helper()
	e, err := Configure(t, s, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// Apply returns what the effect makes of a clip with the generator of a key.
func (e *Effect) Apply(t testing.TB, clip []float32, key int) []float32 {
	t.Helper()
	r := waveform.NewRow(clip, e.width, Generator(key))
	if err := e.Stage.Effect.Apply(r); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(r.Samples)
}

// Generator returns the generator of a row whose key holds n, as stage.Batch creates it.
func Generator(n int) *rand.Rand {
	var seed [32]byte
	binary.LittleEndian.PutUint64(seed[:], uint64(n))
	return rand.New(rand.NewChaCha8(seed))
}

// Noise returns n samples in [-1,1) of a linear congruential generator, as make_golden.py has them.
func Noise(n int) []float32 {
	out := make([]float32, n)
	s := uint32(1)
	for i := range out {
		s = (1103515245*s + 12345) & 0x7fffffff
		out[i] = float32(float64(s)/(1<<30) - 1)
	}
	return out
}

// Sine returns n samples of a sine.
func Sine(n int, hz, amplitude, rate float64) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(amplitude * math.Sin(2*math.Pi*hz*float64(i)/rate))
	}
	return out
}

// Speech returns n samples that resemble speech: harmonics of a gliding pitch in syllables, with pauses between them.
func Speech(n int, rate float64) []float32 {
	out := make([]float32, n)
	phase := 0.0
	for i := range out {
		t := float64(i) / rate
		phase += 2 * math.Pi * (120 + 30*math.Sin(2*math.Pi*0.7*t)) / rate
		envelope := max(0, math.Sin(2*math.Pi*2.5*t))
		for h := 1; h <= 12; h++ {
			out[i] += float32(0.2 * envelope * math.Sin(float64(h)*phase) / float64(h))
		}
	}
	return out
}

// Golden decodes the numbers of a stage. The test's folder must be a subfolder of the plugin's folder.
func Golden(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile("../testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(all[name], v); err != nil {
		t.Fatalf("golden.json, %s: %v", name, err)
	}
}

// Close compares samples with numbers, of which no one may differ by more than tolerance.
func Close(t testing.TB, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d samples, want %d", what, len(got), len(want))
		return
	}
	worst, at := 0.0, 0
	for i, w := range want {
		if d := math.Abs(float64(got[i]) - w); !(d <= worst) {
			worst, at = d, i
		}
	}
	if !(worst <= tolerance) {
		t.Errorf("%s: sample %d is %g, want %g: the difference is more than %g", what, at, got[at], want[at], tolerance)
	}
	t.Logf("%s: largest difference %.2g", what, worst)
}

// Folder writes recordings of 16 bits into a new folder, in files 0.wav, 1.wav and so on.
func Folder(t testing.TB, rate int, recordings ...[]float32) string {
	t.Helper()
	dir := t.TempDir()
	for i, r := range recordings {
		samples := make([]int16, len(r))
		for k, x := range r {
			samples[k] = wav.Sample(x)
		}
		name := filepath.Join(dir, string(rune('0'+i))+".wav")
		if err := os.WriteFile(name, wav.File(rate, samples), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
