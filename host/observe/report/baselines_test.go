package report

import (
	"encoding/binary"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

func baseline(metric, loss string, delta float64) manifest.Baseline {
	return manifest.Baseline{Metric: metric, Target: "mel_spectrograms", Loss: loss, Delta: delta}
}

// targetInputs are the inputs of a bundle with a target of that many bands.
func targetInputs(bands int) []manifest.TensorSpec {
	return []manifest.TensorSpec{
		{
			Name: "mel_spectrograms", DType: manifest.F32,
			Shape:   manifest.Shape{manifest.Sym("B"), manifest.Sym("T_mel"), manifest.Fixed(bands)},
			Lengths: "mel_lengths",
		},
		{Name: "mel_lengths", DType: manifest.I32, Shape: manifest.Shape{manifest.Sym("B")}},
		{
			Name: "text", DType: manifest.I32,
			Shape: manifest.Shape{manifest.Sym("B"), manifest.Sym("T_text"), manifest.Fixed(1)}, Lengths: "mel_lengths",
		},
	}
}

// slot returns a ring slot with these rows of frames; the bytes after a row's frames are not a number.
func slot(rows [][][]float32, frames, bands int) (*ring.Layout, []byte) {
	l := ring.NewLayout([]ring.Tensor{
		{Name: "other", DType: manifest.U8, Shape: []int{3}},
		{Name: "mel_spectrograms", DType: manifest.F32, Shape: []int{len(rows), frames, bands}},
		{Name: "mel_lengths", DType: manifest.I32, Shape: []int{len(rows)}},
	}, nil)
	mem := make([]byte, l.Size)
	data, lengths := l.View(mem, "mel_spectrograms"), l.View(mem, "mel_lengths")
	for i := range len(data) / 4 {
		binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(float32(math.NaN())))
	}
	for i, row := range rows {
		binary.LittleEndian.PutUint32(lengths[4*i:], uint32(len(row)))
		for t, frame := range row {
			for n, v := range frame {
				binary.LittleEndian.PutUint32(data[4*((i*frames+t)*bands+n):], math.Float32bits(v))
			}
		}
	}
	return &l, mem
}

func TestBaselinesByHand(t *testing.T) {
	b, err := NewBaselines([]manifest.Baseline{
		baseline("a", "l2", 0), baseline("b", "l1", 0), baseline("c", "huber", 0), baseline("d", "huber", 0.5),
	},
		targetInputs(2))
	if err != nil {
		t.Fatal(err)
	}
	// Training: row 5 has the frames (1,0) and (3,0), row 6 the frame (2,6). The means per band are 2 and 2.
	l, mem := slot([][][]float32{{{1, 0}, {3, 0}}, {{2, 6}}, {{9, 9}}}, 3, 2)
	b.Record(false, []int32{5, 6, -1}, l, mem)
	// Seen again, with other values (augmented): not taken.
	l, mem = slot([][][]float32{{{100, 100}}, {}}, 1, 2)
	b.Record(false, []int32{5, 7}, l, mem)
	// Evaluation has rows of its own: row 5 is another one. Frame (2,1).
	l, mem = slot([][][]float32{{{2, 1}}}, 1, 2)
	b.Record(true, []int32{5}, l, mem)

	// Distances of training from the constant: 1 2, 1 2, 0 4; from the frame before: 1 0, 2 0, 2 6.
	// Of evaluation: 0 1; 2 1.
	for i, want := range [][4]float64{
		{(1 + 4 + 1 + 4 + 0 + 16) / 6.0, (1 + 0 + 4 + 0 + 4 + 36) / 6.0, 0.5, 2.5},
		{10 / 6.0, 11 / 6.0, 0.5, 1.5},
		{(0.5 + 1.5 + 0.5 + 1.5 + 0 + 3.5) / 6, (0.5 + 0 + 1.5 + 0 + 1.5 + 5.5) / 6, 0.25, (1.5 + 0.5) / 2},
		{
			0.5 * (0.75 + 1.75 + 0.75 + 1.75 + 3.75) / 6, 0.5 * (0.75 + 1.75 + 1.75 + 5.75) / 6, 0.5 * 0.75 / 2,
			0.5 * (1.75 + 0.75) / 2,
		},
	} {
		got := b.Losses()[i]
		if got.Train.Rows != 3 || got.Eval.Rows != 1 { // row 7 is empty, and counts as a row
			t.Errorf("%s: %d and %d rows", got.Loss, got.Train.Rows, got.Eval.Rows)
		}
		for k, v := range []float64{
			got.Train.Constant, got.Train.PreviousFrame, got.Eval.Constant, got.Eval.PreviousFrame,
		} {
			if math.Abs(v-want[k]) > 1e-12 {
				t.Errorf("%s with delta %v, loss %d: %v, want %v", got.Loss, got.Delta, k, v, want[k])
			}
		}
	}
}

func TestBaselinesOfNothing(t *testing.T) {
	b, err := NewBaselines([]manifest.Baseline{baseline("a", "l1", 0)}, targetInputs(2))
	if err != nil {
		t.Fatal(err)
	}
	if got := b.Losses()[0]; !math.IsNaN(got.Train.Constant) || !math.IsNaN(got.Eval.PreviousFrame) {
		t.Errorf("got %+v", got)
	}
	if none, err := NewBaselines(nil, nil); err != nil || len(none.Losses()) != 0 {
		t.Errorf("no baselines: %v, %v", none.Losses(), err)
	}
}

func TestBaselinesAreBounded(t *testing.T) {
	const frames, bands = 1 << 10, 1 << 10 // 4 MiB a row
	b, err := NewBaselines([]manifest.Baseline{baseline("a", "l1", 0)}, targetInputs(bands))
	if err != nil {
		t.Fatal(err)
	}
	row := make([][]float32, frames)
	l, mem := slot([][][]float32{row}, frames, bands)
	for i := range int32(20) {
		b.Record(false, []int32{i}, l, mem)
	}
	// No shorter row slips in after the first that found no room.
	l, mem = slot([][][]float32{row[:1]}, frames, bands)
	b.Record(false, []int32{99}, l, mem)
	b.Record(true, []int32{0}, l, mem)
	side := b.targets["mel_spectrograms"].sides
	if len(side[0].rows) != keptBytes/2/(4<<20) || len(side[1].rows) != 1 {
		t.Errorf("%d and %d rows kept", len(side[0].rows), len(side[1].rows))
	}
}

// A length that a stage got wrong does not reach beyond the row.
func TestBaselinesClampLengths(t *testing.T) {
	b, err := NewBaselines([]manifest.Baseline{baseline("a", "l1", 0)}, targetInputs(1))
	if err != nil {
		t.Fatal(err)
	}
	l, mem := slot([][][]float32{{{1}, {1}}, {{5}, {5}}}, 2, 1)
	for i, n := range []int32{99, -1} {
		binary.LittleEndian.PutUint32(l.View(mem, "mel_lengths")[4*i:], uint32(n))
	}
	b.Record(false, []int32{0, 1}, l, mem)
	if got := b.Losses()[0].Train; got.Constant != 0 || got.PreviousFrame != 0.5 {
		t.Errorf("got %+v", got)
	}
}

func TestNewBaselinesRefuses(t *testing.T) {
	for _, c := range []struct {
		b    manifest.Baseline
		want string
	}{
		{manifest.Baseline{Target: "codes", Loss: "l1"}, `baselines[0]: target "codes" is no input`},
		{manifest.Baseline{Target: "text", Loss: "l1"}, "baselines[0]: target text i32"},
		{manifest.Baseline{Target: "mel_spectrograms", Loss: "cosine"}, `unknown loss "cosine"`},
	} {
		_, err := NewBaselines([]manifest.Baseline{c.b}, targetInputs(2))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
}
