package effecttest

import (
	"encoding/json"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/plugins/augment/internal/augmenttest"
	"github.com/xtts-host/xtts-host/plugins/augment/internal/waveform"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stage/stagetest"
)

// Rules tests what every stage of waveforms keeps, with each configuration and with none: the rules of the protocol and
// those of this plugin. defaults is the configuration that the program has without one.
func Rules(t *testing.T, name string, newStage func() stage.Stage, defaults any, configs ...string) {
	t.Helper()
	spec := augmenttest.Spec(t, name)
	augmenttest.CheckDefaults(t, spec, defaults)
	for _, port := range spec.Outputs {
		if port.Name == waveform.Port && port.MaxAbs != waveform.MaxAbs {
			t.Errorf("plugin.json has a max_abs of %g for %s, the program %d", port.MaxAbs, port.Name, waveform.MaxAbs)
		}
	}
	data := map[string]string{}
	for folder := range spec.Data {
		data[folder] = Folder(t, Rate, Noise(3000), Speech(40000, Rate), Noise(1))
	}
	for _, config := range append([]string{""}, configs...) {
		t.Run("rules "+config, func(t *testing.T) {
			stagetest.Run(t, newStage, stagetest.Options{Manifest: "../plugin.json", Stage: name, Config: config,
				Buckets: []manifest.Bucket{{"T_wav": 2000}, {"T_wav": 8191}}})
			o := Options{Config: config, Width: 9000, Folders: data}
			sameBits(t, newStage, o)
			shortRows(t, newStage, o)
			allocates(t, newStage, o)
		})
	}
}

func row(key byte, n int) augmenttest.Row {
	return augmenttest.Row{Key: [stage.KeySize]byte{key}, Data: Speech(n, Rate)}
}

// sameBits: a row has the same bits alone, at other places, among other rows, with other numbers of threads, and in a
// process that begins with it.
func sameBits(t *testing.T, newStage func() stage.Stage, o Options) {
	t.Helper()
	process := func(s stage.Stage, workers int, rows ...augmenttest.Row) (out [][]float32, lengths []int) {
		t.Helper()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers))
		e := &Effect{Stage: s.(*waveform.Stage), width: o.Width}
		o := o
		o.Rate = Rate
		r, err := augmenttest.New(t, s, options(e, o))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time with memory that has been used
			if out, err = r.Process(t, rows); err != nil {
				t.Fatal(err)
			}
		}
		return out, r.Lengths
	}
	alone, length := process(newStage(), 1, row(7, 6000))
	for at, rows := range [][]augmenttest.Row{
		{row(7, 6000), row(1, 9000)}, {row(3, 9000), row(7, 6000)}, {row(1, 800), {}, row(7, 6000), row(2, 9000)},
		{row(1, 50), row(2, 8000), row(5, 1), row(7, 6000), row(5, 9000), row(6, 3)},
	} {
		got, lengths := process(newStage(), 1+3*(at%2), rows...)
		if lengths[at] != length[0] || !SameBits(got[at], alone[0]) {
			t.Errorf("a row has other bits as row %d of %d than alone", at, len(rows))
		}
	}
}

// shortRows: rows of any length get finite samples within the range, and keep the padding behind them. Empty rows stay
// empty.
func shortRows(t *testing.T, newStage func() stage.Stage, o Options) {
	t.Helper()
	e := &Effect{Stage: newStage().(*waveform.Stage), width: o.Width}
	o.Rate = Rate
	r, err := augmenttest.New(t, e.Stage, options(e, o))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 9, 441, 2048, 9000} {
		rows := []augmenttest.Row{{}}
		for _, clip := range [][]float32{Speech(n, Rate), make([]float32, n), Noise(n), faint(n), Speech(n, Rate),
			Noise(n), faint(n)} {
			rows = append(rows, augmenttest.Row{Key: [stage.KeySize]byte{byte(len(rows)), byte(n)}, Data: clip})
		}
		out, err := r.Process(t, rows)
		if err != nil {
			t.Fatalf("rows of %d: %v", n, err)
		}
		for i, samples := range out {
			length := r.Lengths[i]
			if i == 0 && length != 0 || i > 0 && (length < 1 || !e.Stage.Resizes && length != n) {
				t.Fatalf("row %d has %d samples of %d", i, length, len(rows[i].Data))
			}
			for k, x := range samples {
				if k < length && !(math.Abs(float64(x)) <= waveform.MaxAbs) || k >= length && x != augmenttest.Pad {
					t.Fatalf("sample %d of row %d, of which %d of %d are valid, is %v", k, i, length, n, x)
				}
			}
		}
	}
}

// faint returns n samples of -1e-40, 0 and 1e-40: subnormal numbers, of which the reciprocals are infinite in float32.
func faint(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(i%3-1) * 1e-40
	}
	return out
}

// allocates: a row needs no memory once the worker has had one of its length.
func allocates(t *testing.T, newStage func() stage.Stage, o Options) {
	t.Helper()
	o.Rate = Rate
	e := Must(t, newStage(), o)
	clip := Speech(9000, Rate)
	r := waveform.NewRow(clip, o.Width, Generator(0))
	rands := Generator(1)
	for range 20 {
		r.Reset(clip, o.Width, rands)
		if err := e.Stage.Effect.Apply(r); err != nil {
			t.Fatal(err)
		}
	}
	if n := testing.AllocsPerRun(20, func() {
		r.Reset(clip, o.Width, rands)
		if err := e.Stage.Effect.Apply(r); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("a row needs %g allocations", n)
	}
}

// SameBits reports whether two clips have the same bits.
func SameBits(a, b []float32) bool {
	if len(a) != len(b) {
		return false
	}
	for i, x := range a {
		if math.Float32bits(x) != math.Float32bits(b[i]) {
			return false
		}
	}
	return true
}

// Refuses tests that configurations are refused, each with a message that has these words.
func Refuses(t *testing.T, newStage func() stage.Stage, o Options, messages map[string]string) {
	t.Helper()
	for config, want := range messages {
		o.Config = config
		if _, err := Configure(t, newStage(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", config, err, want)
		}
	}
}

// Draws returns what the stage reports of a row of speech of n samples, for each of the keys below count, and what it
// makes of the row.
func Draws(t *testing.T, s stage.Stage, o Options, n, count int) (draws []map[string]any, out [][]float32) {
	t.Helper()
	e := &Effect{Stage: s.(*waveform.Stage), width: max(o.Width, n)}
	if o.Rate == 0 {
		o.Rate = Rate
	}
	r, err := augmenttest.New(t, s, options(e, o))
	if err != nil {
		t.Fatal(err)
	}
	for key := range count {
		rows, err := r.Process(t, []augmenttest.Row{row(byte(key), n)})
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]any{}
		if text := r.Draws[0]; text != "" {
			if err := json.Unmarshal([]byte(text), &values); err != nil {
				t.Fatal(err)
			}
		}
		draws, out = append(draws, values), append(out, rows[0][:r.Lengths[0]])
	}
	return draws, out
}
