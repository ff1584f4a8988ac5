package train

import (
	"slices"
	"testing"
	"time"

	"github.com/xtts-host/xtts-host/ortgraphs"
)

// BenchmarkFreeze compares a step of nano that trains two tensors with one that trains all, alternately, so that a
// busy machine slows both.
func BenchmarkFreeze(b *testing.B) {
	bundle, g := open(b, nano), readGolden(b, "nano.json")
	layouts, _ := shaped(b, bundle, 8, g.Steps[:1])
	two := map[string]bool{}
	for _, p := range bundle.Manifest.Parameters {
		two[p.Name] = p.Name != "mel_head.weight" && p.Name != "mel_head.bias"
	}
	var steps []func() time.Duration
	for _, frozen := range []map[string]bool{nil, two} {
		arena := ortgraphs.NewArena(bundle.Manifest.Parameters, ortgraphs.Policy{Frozen: frozen})
		m, err := NewModel(
			ModelConfig{Bundle: bundle, Arenas: []*ortgraphs.Arena{arena}, Layouts: layouts, Slots: 1, Threads: 1})
		if err != nil {
			b.Fatal(err)
		}
		defer m.Close()
		o, err := NewOptimizer(m, 0, g.Optimizer, false, 1)
		if err != nil {
			b.Fatal(err)
		}
		defer o.Close()
		g.fill(b, g.Steps[0], &layouts[0], m.slots[0].host)
		steps = append(steps, func() time.Duration {
			began := time.Now()
			if _, err := m.Train(0, 0, 0, 1); err != nil {
				b.Fatal(err)
			}
			if err := o.Step(1e-4); err != nil {
				b.Fatal(err)
			}
			took := time.Since(began)
			if _, updated := o.Outcome(); !updated {
				b.Fatal("no update")
			}
			return took
		})
	}
	var all, part, ratio []float64
	for b.Loop() {
		x, y := float64(steps[0]()), float64(steps[1]())
		all, part, ratio = append(all, x), append(part, y), append(ratio, y/x)
	}
	median := func(x []float64) float64 { slices.Sort(x); return x[len(x)/2] }
	b.ReportMetric(median(all)/1e6, "all-ms")
	b.ReportMetric(median(part)/1e6, "two-ms")
	b.ReportMetric(median(ratio), "ratio")
}
