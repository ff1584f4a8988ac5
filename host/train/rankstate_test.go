package train

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// onlyRank is the ranks of a world of one.
type onlyRank struct{ sums, broadcasts int }

func (a *onlyRank) Sum(gpu.Stream, []Part) error { a.sums++; return nil }
func (a *onlyRank) Broadcast([]Part) error       { a.broadcasts++; return nil }

// TestAWorldOfOneChangesNothing: the mean of one rank's state has its bits, and loss and metrics that are summed with
// the gradients are those of the host, on the CPU and one batch ahead with CUDA graphs on a GPU. A batch whose
// gradients are weighed in place, by the graph or the kernel, gives the bits of the accumulation of one batch.
func TestAWorldOfOneChangesNothing(t *testing.T) {
	devices := maps.Clone(cpuAndGPU)
	devices["GPU with kernels"] = func(t *testing.T) Device { d, _ := fakeWith(t, fakeWeighs(0)); return d }
	for micros := 1; micros <= 2; micros++ {
		want := runStateful(t, Device{}, micros, true, nil, 0, nil)
		for name, device := range devices {
			ranks := new(onlyRank)
			got := runStateful(t, device(t), micros, micros > 1, nil, 0, ranks)
			if ranks.broadcasts != len(want)*micros || ranks.sums != len(want)*(micros+1) {
				t.Errorf("%s: %d broadcasts and %d sums in %d steps", name, ranks.broadcasts, ranks.sums, len(want))
			}
			for i := range want {
				name := fmt.Sprintf("%s, %d micro-batches, step %d", name, micros, i+1)
				same(t, name+": weights", got[i].weights, want[i].weights)
				same(t, name+": moments", got[i].moments, want[i].moments)
				for j, v := range want[i].numbers {
					difference := math.Abs(got[i].numbers[j]/v - 1)
					if !(difference < 1e-6) && !(math.IsNaN(v) && math.IsNaN(got[i].numbers[j])) {
						t.Errorf("%s: loss and metrics %v, want %v", name, got[i].numbers, want[i].numbers)
					}
				}
			}
		}
	}
}

// another are the ranks of a world of two in which this one leads: what the other one left, and its rows.
type another struct {
	left []float32
	rows float32
	lead []float32
}

func (a *another) Broadcast(parts []Part) error {
	a.lead = slices.Clone(ort.View[float32](parts[0].Host))
	return nil
}

func (a *another) Sum(_ gpu.Stream, parts []Part) error {
	deviation, rows := ort.View[float32](parts[0].Host), ort.View[float32](parts[1].Host)
	for i, v := range a.left {
		if v != a.lead[i] && a.rows > 0 {
			deviation[i] += a.rows * (v - a.lead[i])
		}
	}
	rows[0] += a.rows
	return nil
}

// TestMeanOfRanks: the state of two ranks becomes their mean, weighted by rows, and what both have stays as it is.
func TestMeanOfRanks(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		name               string
		rows               int
		others             float32 // rows
		own, another, want []float32
	}{
		{"rows weigh", 3, 1, []float32{1, -2, 0}, []float32{5, 2, 4}, []float32{2, -1, 1}},
		{
			"equal values keep their bits", 3, 2, []float32{1 << 24, 0.1, 1e-40}, []float32{1 << 24, 0.1, 1e-40},
			[]float32{1 << 24, 0.1, 1e-40},
		},
		{"infinite ones as well", 3, 2, []float32{inf, -inf, 1}, []float32{inf, -inf, 1}, []float32{inf, -inf, 1}},
		{"a rank without rows does not count", 3, 0, []float32{0.3, 7, 1}, []float32{inf, -1, 0}, []float32{0.3, 7, 1}},
		{"no rank has rows", 0, 0, []float32{0.3, 7, inf}, []float32{0.3, 7, inf}, []float32{0.3, 7, inf}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m, _, _ := stateful(t, Device{}, 1)
			o, ranks := newOptimizer(t, m, plainSGD, true), &another{left: c.another, rows: c.others}
			if err := o.Share(ranks); err != nil {
				t.Fatal(err)
			}
			next := ort.View[float32](m.players[0].state.next.host)
			copy(next, c.own)
			m.rows = c.rows
			if err := o.window.share.add(o, true); err != nil {
				t.Fatal(err)
			}
			if got := next[:len(c.want)]; !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
