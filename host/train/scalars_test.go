package train

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/xtts-host/xtts-host/host/stages/pipeline"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

func TestScalarsOfABatch(t *testing.T) {
	s := batchScalars{specs: []manifest.Scalar{
		{Name: "frames", Origin: manifest.OriginWindow, Lengths: "n"},
		{Name: "kl", Origin: manifest.OriginSchedule, Points: [][2]float64{{0, 0}, {10, 1}}},
		{Name: "tokens", Origin: manifest.OriginWindow, Lengths: "m"},
	}}
	m := newMemory(Device{})
	defer m.Close()
	in := m.words(s.scalarWords(2))
	for range 2 {
		s.addSlot(&m, in)
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	values := func(slot int) (out []float32) {
		for _, w := range s.slots[slot] {
			out = append(out, *w.value)
		}
		return out
	}
	if got := fmt.Sprint(values(0), values(1)); got != "[1 1 1] [1 1 1]" {
		t.Errorf("a trial has %s", got)
	}
	s.SetScalars(1, &pipeline.Batch{Step: 5, Totals: []float64{700, 40}})
	s.SetScalars(0, &pipeline.Batch{Step: 5, Eval: true, Totals: []float64{0, 3}})
	if got := fmt.Sprint(values(0), values(1)); got != "[1 1 3] [700 0.5 40]" {
		t.Errorf("the batches have %s", got)
	}
	if got := fmt.Sprint(s.appendScheduled(nil, 5, false), s.appendScheduled(nil, 5, true)); got != "[0.5] [1]" {
		t.Errorf("the metrics are %s", got)
	}
}

// TestWeightedSums: with accumulation weighted, gradients and losses of micro-batches are added up, not averaged.
func TestWeightedSums(t *testing.T) {
	g, b := readGolden(t, "multispeaker.accumulation.json"), open(t, multispeaker) // whose loss_weight is 1
	norms := map[string]float64{}
	for _, kind := range []string{"mean", manifest.Weighted} {
		b.Manifest.Accumulation = kind
		layouts, _ := shaped(t, b, g.Rows, g.MicroBatches)
		m := newModel(t, b, layouts, 1)
		o := newOptimizer(t, m, b.Manifest.Optimizer, true)
		var total mean
		for i, micro := range g.MicroBatches {
			g.fill(t, micro, &layouts[0], input(t, m))
			total.add(trainOn(t, m, 0, g.Seed))
			if err := o.Accumulate(i == 0); err != nil {
				t.Fatal(err)
			}
		}
		loss, _ := total.result(nil, m.weighted)
		want := g.Loss
		if m.weighted {
			want *= float64(len(g.MicroBatches))
		}
		if math.Abs(loss-want) > 1e-6*want {
			t.Errorf("%s: loss %v, want %v", kind, loss, want)
		}
		norm, updated := step(t, m, o, 1e-3)
		if !updated {
			t.Fatal("no update")
		}
		norms[kind] = norm
	}
	if want := norms["mean"] * float64(len(g.MicroBatches)); math.Abs(norms[manifest.Weighted]-want) > 1e-6*want {
		t.Errorf("gradient norms %v", norms)
	}
}

// TestSumsOfTotals: the players of a step have the same sums over the ranks for a batch, although none waits for those
// of the one before it.
func TestSumsOfTotals(t *testing.T) {
	d, _ := fakeDevice(t)
	m := newMemory(d)
	defer m.Close()
	s := &batchScalars{
		specs: []manifest.Scalar{
			{Origin: manifest.OriginSchedule, Points: [][2]float64{{0, 7}}}, {Origin: manifest.OriginWindow},
		},
		weighted: true,
	}
	in := m.words(2)
	s.addSlot(&m, in)
	s.shareTotals(&m, &twin{model: d.Compute})
	for _, total := range []float64{10, 10, 0} {
		s.SetScalars(0, &pipeline.Batch{Rows: []int32{1}, Totals: []float64{total}})
		if err := errors.Join(m.send(in), s.sumTotals(&m, in, 0)); err != nil {
			t.Fatal(err)
		}
		s.SetScalars(0, &pipeline.Batch{Rows: []int32{1}, Totals: []float64{total}}) // of the next player
		if err := d.Compute.Synchronize(); err != nil {
			t.Fatal(err)
		}
		values := s.read(0)
		if got := values[1]; values[0] != 7 || math.Abs(float64(got)-2*total) > 1e-20 {
			t.Errorf("a total of %v on both ranks is %v", total, values)
		}
	}
}
