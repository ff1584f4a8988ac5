package train

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
)

// batchOf returns a model with one counter-made batch in its slot.
func batchOf(t *testing.T, dir, name string, threads int) (*Model, golden, goldenBatch, *ring.Layout) {
	t.Helper()
	g, b := readGolden(t, name+".json"), open(t, dir)
	batch := g.Steps[0]
	layouts, _ := shaped(t, b, g.Rows, []goldenBatch{batch})
	m := newModel(t, b, layouts, threads)
	g.fill(t, batch, &layouts[0], input(t, m))
	return m, g, batch, &layouts[0]
}

// outputs runs the batch and returns everything that the graph makes of it.
func outputs(t *testing.T, m *Model, seed int64) (Result, []byte) {
	t.Helper()
	if err := m.pull(&m.players[0].grads.block); err != nil {
		t.Fatal(err)
	}
	for i := range m.players[0].grads.host {
		m.players[0].grads.host[i] = 0xff // NaN: whatever is not written shows
	}
	if err := m.push(&m.players[0].grads.block); err != nil {
		t.Fatal(err)
	}
	r := trainOn(t, m, 0, seed)
	var grads []byte
	for _, g := range gradients(t, m) {
		grads = append(grads, g.Data...)
	}
	r.Metrics = append([]float64(nil), r.Metrics...)
	return r, grads
}

func empty(layout *ring.Layout, slot []byte, row int) {
	for _, t := range layout.Tensors {
		if strings.HasSuffix(t.Name, "_lengths") {
			ort.View[int32](t.In(slot))[row] = 0
		}
	}
}

// scribble fills a row of every tensor but the lengths: the f32 ones with values, the i32 ones with id.
func scribble(layout *ring.Layout, slot []byte, row int, value func(i int) float32, id int32) {
	for _, t := range layout.Tensors {
		data := t.In(slot)
		n := len(data) / t.Shape[0]
		data = data[row*n : (row+1)*n]
		switch {
		case strings.HasSuffix(t.Name, "_lengths"):
		case t.DType == manifest.I32:
			for i, v := 0, ort.View[int32](data); i < len(v); i++ {
				v[i] = id
			}
		default:
			for i, v := 0, ort.View[float32](data); i < len(v); i++ {
				v[i] = value(i)
			}
		}
	}
}

func TestEmptyRows(t *testing.T) {
	for name, dir := range bundles {
		t.Run(name, func(t *testing.T) {
			m, g, _, layout := batchOf(t, dir, name, 2)
			slot := input(t, m)
			_, full := outputs(t, m, 7)
			empty(layout, slot, 1)
			want, wantGrads := outputs(t, m, 7)
			if !finite(want) || bytes.Equal(full, wantGrads) {
				t.Fatalf("one empty row: %+v, same gradients as with the row: %v", want, bytes.Equal(full, wantGrads))
			}
			for what, value := range map[string]func(i int) float32{
				"zeros": func(int) float32 { return 0 },
				"large": func(i int) float32 { return float32(i%7) * 1e30 },
				"NaN":   func(int) float32 { return float32(math.NaN()) },
				"Inf":   func(int) float32 { return float32(math.Inf(-1)) },
			} {
				scribble(layout, slot, 1, value, 3)
				got, grads := outputs(t, m, 7)
				if got.Loss != want.Loss || got.Weight != want.Weight || !bytes.Equal(grads, wantGrads) {
					t.Errorf("%s in an empty row change the result: loss %v, want %v", what, got.Loss, want.Loss)
				}
			}
			for row := range g.Rows {
				empty(layout, slot, row)
			}
			r, grads := outputs(t, m, 7)
			if r.Loss != 0 || r.Weight != 0 || !finite(r) {
				t.Errorf("all rows empty: %+v", r)
			}
			for _, v := range floats(grads) {
				if v != 0 {
					t.Fatalf("all rows empty: a gradient is %v", v)
				}
			}
			load(t, m, 0)
			if r, err := m.Evaluate(0, 0); err != nil || r.Loss != 0 || r.Weight != 0 {
				t.Errorf("all rows empty, evaluation: %+v, %v", r, err)
			}
		})
	}
}

func finite(r Result) bool {
	for _, v := range append([]float64{r.Loss, r.Weight}, r.Metrics...) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// TestEveryGroupLearns: the gradient of every group of parameters has a root mean square of at least 1e-4 of the
// largest's.
func TestEveryGroupLearns(t *testing.T) {
	for _, name := range []string{"nano", "multispeaker"} {
		t.Run(name, func(t *testing.T) {
			m, _, _, _ := batchOf(t, bundles[name], name, 2)
			outputs(t, m, -1)
			sum, n := map[string]float64{}, map[string]float64{}
			for _, g := range gradients(t, m) {
				group, _, _ := strings.Cut(g.Name, ".")
				for _, v := range floats(g.Data) {
					sum[group] += float64(v) * float64(v)
					n[group]++
				}
				if norm(floats(g.Data)) == 0 {
					t.Errorf("%s has no gradient", g.Name)
				}
			}
			largest := 0.0
			for group := range sum {
				sum[group] = math.Sqrt(sum[group] / n[group])
				largest = max(largest, sum[group])
			}
			if len(sum) < 3 {
				t.Errorf("groups: %v", sum)
			}
			for group, rms := range sum {
				t.Logf("%-20s %.2g of the largest", group, rms/largest)
				if rms < 1e-4*largest {
					t.Errorf("the gradient of %s is %.2g of the largest", group, rms/largest)
				}
			}
		})
	}
}

// TestConditionsMatter: another text, or another voice, is another loss.
func TestConditionsMatter(t *testing.T) {
	for name, conditions := range map[string][]string{
		"nano":         {"text_sequences", "reference_mel_spectrograms"},
		"multispeaker": {"text_sequences", "speaker_ids", "language_ids"},
	} {
		for _, condition := range conditions {
			m, _, _, layout := batchOf(t, bundles[name], name, 2)
			before, _ := outputs(t, m, -1)
			tensor, _ := layout.Find(condition)
			data := tensor.In(input(t, m))
			n := len(data) / tensor.Shape[0]
			last := bytes.Clone(data[len(data)-n:])
			copy(data[n:], data)
			copy(data, last)
			after, _ := outputs(t, m, -1)
			if d := math.Abs(after.Loss-before.Loss) / before.Loss; d < 1e-6 {
				t.Errorf("%s: %s moved on by a row: the loss changes by %.2g", name, condition, d)
			}
		}
	}
}

func TestSeedDrivesDropout(t *testing.T) {
	m, _, _, _ := batchOf(t, pico, "pico", 1)
	off, offGrads := outputs(t, m, -1)
	a, aGrads := outputs(t, m, 5)
	again, againGrads := outputs(t, m, 5)
	b, _ := outputs(t, m, 6)
	other, otherGrads := outputs(t, m, -9)
	if a.Loss == off.Loss || a.Loss == b.Loss {
		t.Errorf("losses: off %v, seed 5 %v, seed 6 %v", off.Loss, a.Loss, b.Loss)
	}
	if a.Loss != again.Loss || !bytes.Equal(aGrads, againGrads) || off.Loss != other.Loss ||
		!bytes.Equal(offGrads, otherGrads) {
		t.Error("the same seed gives other numbers")
	}
	load(t, m, 0)
	if e, err := m.Evaluate(0, 0); err != nil || math.Abs(e.Loss-off.Loss) > 1e-6*off.Loss {
		t.Errorf("evaluation gives %v, training without dropout %v, %v", e.Loss, off.Loss, err)
	}
}

func TestThreadsChangeNoBit(t *testing.T) {
	for name, dir := range bundles {
		one, _, _, _ := batchOf(t, dir, name, 1)
		two, _, _, _ := batchOf(t, dir, name, 2)
		a, aGrads := outputs(t, one, 3)
		b, bGrads := outputs(t, two, 3)
		if a.Loss != b.Loss || !bytes.Equal(aGrads, bGrads) {
			t.Errorf("%s: 1 and 2 threads differ: loss %v and %v", name, a.Loss, b.Loss)
		}
	}
}
