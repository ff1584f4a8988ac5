package batch

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// contract is that of the embedded model.
var contract = manifest.Features{
	NFFT: 1024, Power: 1, Log: "ln", LogFloor: 1e-5, Normalization: &manifest.Normalization{Mean: -6, Std: 2.5},
	NMels: 80,
}

func waveStage(maxAbs float64) catalog.Instance {
	p := manifest.TensorSpec{
		Name: "in", DType: manifest.F32, Shape: manifest.Shape{manifest.Sym("B"), manifest.Sym(manifest.SymbolWav)},
		MaxAbs: maxAbs,
	}
	return catalog.Instance{
		Stage:  manifest.Stage{Inputs: []manifest.TensorSpec{p}, Outputs: []manifest.TensorSpec{p}},
		Inputs: map[string]string{"in": "waveform"}, Outputs: map[string]string{"in": "waveform"},
	}
}

// TestJudge has a stage change one row of two waveforms.
func TestJudge(t *testing.T) {
	const width = 5000
	tone := func(i int) float64 { return 0.3 * math.Sin(float64(i)/7) }
	bits := func(i int) float64 { // the halves of f64, of values that f32 can hold: no NaN is among them
		half := math.Float64bits(float64(float32(tone(i/2)))) >> (32 * (i % 2))
		return float64(math.Float32frombits(uint32(half)))
	}
	for _, tt := range []struct {
		name   string
		before func(i int) float64
		after  func(i int) float64
		want   string
	}{
		{"nothing", tone, tone, ""},
		{"another sign", tone, func(i int) float64 { return -tone(i) }, ""},
		{"clipping", tone, func(i int) float64 { return math.Tanh(100 * tone(i)) }, ""},
		{"an overshoot", tone, func(i int) float64 { return 20 * tone(i) }, ""},
		{"samples of 16 bits", tone, func(i int) float64 { return 32768 * tone(i) }, "has the value 9"},
		{"samples of 16 bits of a soft recording", func(i int) float64 { return tone(i) / 3000 },
			func(i int) float64 { return 32768 * tone(i) / 3000 },
			"is 90 dB louder than before the stage, and beyond full scale"},
		{"a soft recording made as loud as others", func(i int) float64 { return tone(i) / 1000 }, tone, ""},
		{"divided twice", tone, func(i int) float64 { return tone(i) / 32768 },
			"is 90 dB softer than before the stage"},
		{"zeros", tone, func(int) float64 { return 0 }, "has the value 0 everywhere, but the recording is not silent"},
		{"zeros of either sign", tone, func(i int) float64 { return math.Copysign(0, tone(i)) },
			"has the value 0 everywhere"},
		{"a constant", tone, func(int) float64 { return 0.5 }, "has the value 0.5 everywhere"},
		{"a gate on silence", func(i int) float64 { return tone(i) / 1e4 }, func(int) float64 { return 0 }, ""},
		{"f64", tone, bits, "beyond its range of 8"},
		{"1e30", tone, func(i int) float64 { return max(tone(i), float64(i/4999)*1e30) },
			"has the value 1e+30 at element 4999, beyond its range of 8"},
		{"NaN", tone, func(i int) float64 { return math.Log(tone(i)) }, "is not finite"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			layout := ring.NewLayout([]ring.Tensor{{Name: "waveform", DType: manifest.F32, Shape: []int{2, width}}},
				nil)
			slot := make([]byte, layout.Size)
			fill := func(row int, wave func(i int) float64) {
				for i := range width {
					binary.LittleEndian.PutUint32(layout.Tensors[0].Row(slot, row)[4*i:],
						math.Float32bits(float32(wave(i))))
				}
			}
			in := waveStage(1e7)
			j, out, rows := newJudge(in, &layout, rangesOf([]catalog.Instance{in}, contract)),
				newOutputs(in, &layout, nil), []int32{7, 8}
			fill(0, tone)
			fill(1, tt.before)
			before := j.levels(slot, rows, nil)
			fill(1, tt.after)
			why := ""
			for _, f := range j.find(&out, slot, rows, before) {
				if why += f.why; f.row != 1 || f.tensor != "waveform" {
					t.Errorf("row %d of %s: %s", f.row, f.tensor, f.why)
				}
			}
			if (why == "") != (tt.want == "") || !strings.Contains(why, tt.want) {
				t.Errorf("%q, want %q", why, tt.want)
			}
		})
	}
}

// TestUsualRanges: a tensor that no plugin declares a range for has the usual one of its kind.
func TestUsualRanges(t *testing.T) {
	shape := func(symbols ...string) (s manifest.Shape) {
		for _, symbol := range append([]string{"B"}, symbols...) {
			s = append(s, manifest.Sym(symbol))
		}
		return s
	}
	for _, tt := range []struct {
		tensor string
		port   manifest.TensorSpec
		want   float32
	}{
		{"waveform", manifest.TensorSpec{Shape: shape("T_wav")}, 8},
		{"anything", manifest.TensorSpec{Shape: shape("T_wav")}, 8},
		{"reference_waveform", manifest.TensorSpec{Shape: shape("T_ref")}, 8},
		{"waveform", manifest.TensorSpec{Shape: shape("T_wav"), MaxAbs: 1e7}, 8},
		{"waveform", manifest.TensorSpec{Shape: shape("T_wav"), MaxAbs: 1}, 1},
		{"reference_mel_spectrograms", manifest.TensorSpec{Shape: shape("T", "n")}, spectrumRange(contract)},
		{"any", manifest.TensorSpec{Shape: shape("T", "n_mels"), MaxAbs: 1e4}, spectrumRange(contract)},
		{"pitch", manifest.TensorSpec{Shape: shape("T_mel")}, 1e5},
		{"energy", manifest.TensorSpec{Shape: shape("T_mel"), MaxAbs: 100}, 100},
		{"embedding", manifest.TensorSpec{Shape: shape("d")}, 1e12},
	} {
		tt.port.Name, tt.port.DType = "out", manifest.F32
		in := catalog.Instance{
			Stage:   manifest.Stage{Outputs: []manifest.TensorSpec{tt.port}},
			Outputs: map[string]string{"out": tt.tensor},
		}
		if got := rangesOf([]catalog.Instance{in}, contract)[tt.tensor]; got != tt.want {
			t.Errorf("%s%v with max_abs %g: %g, want %g", tt.tensor, tt.port.Shape, tt.port.MaxAbs, got, tt.want)
		}
	}
	if r := spectrumRange(contract); r < 10 || r > 20 {
		t.Errorf("range of spectrograms: %g", r)
	}
}

// TestSeals: a write to a finished tensor is found, a write to one that is being made is not.
func TestSeals(t *testing.T) {
	layout := ring.NewLayout([]ring.Tensor{
		{Name: "mel", DType: manifest.F32, Shape: []int{2, 3}}, {Name: "text", DType: manifest.I32, Shape: []int{2, 3}},
	}, nil)
	r, err := ring.Create(2, layout.Size)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s, mel, text := newSeals(r), layout.Tensors[:1], layout.Tensors[1:]
	s.begin(1)
	s.set(1, text)
	mel[0].Row(r.Slot(1), 1)[0] ^= 1
	if err := s.check(1, layout.Tensors); err != nil {
		t.Error(err)
	}
	s.set(1, mel)
	text[0].Row(r.Slot(1), 1)[11] ^= 1
	const want = "row 1 of text in ring slot 1 was written to after the answer of the call that made it"
	if got := message(s.check(1, layout.Tensors)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := s.check(1, mel); err != nil {
		t.Error(err)
	}
	s.begin(1)
	if err := s.check(1, layout.Tensors); err != nil {
		t.Errorf("of a new batch: %v", err)
	}
	(*seals)(nil).set(0, mel)
}

// BenchmarkSeals is the cost for a batch of 16 recordings of 10 s.
func BenchmarkSeals(b *testing.B) {
	layout := ring.NewLayout([]ring.Tensor{{Name: "waveform", DType: manifest.F32, Shape: []int{16, 220500}}}, nil)
	r, err := ring.Create(1, layout.Size)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	s := newSeals(r)
	for b.Loop() {
		s.set(0, layout.Tensors)
		if err := s.check(0, layout.Tensors); err != nil {
			b.Fatal(err)
		}
	}
}
