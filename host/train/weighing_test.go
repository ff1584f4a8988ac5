package train

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/gpu/kernels"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/ortgraphs/bundletest"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// sole are the ranks of a world of one that remember what was summed at the end of a window.
type sole struct{ parts []Part }

func (s *sole) Sum(_ gpu.Stream, parts []Part) error { s.parts = parts; return nil }
func (*sole) Broadcast([]Part) error                 { return nil }

// weighings is a model in which gradients are weighed, and its optimizer.
type weighings struct {
	*testing.T
	m *Model
	o *Optimizer
	*sole
	precision manifest.DType
}

func newWeighings(t *testing.T, d Device, precision manifest.DType) *weighings {
	t.Helper()
	w := &weighings{T: t, sole: new(sole), precision: precision}
	if precision == manifest.BF16 {
		w.m, _, _ = newMixed(t, bundletest.Mixed(t, pico, "mel_head.weight"), d)
	} else {
		w.m, _, _ = picoOn(t, d)
	}
	w.o = newOptimizer(t, w.m, plainSGD, false)
	if err := w.o.Share(w.sole); err != nil {
		t.Fatal(err)
	}
	for _, prepare := range []func() (Prepared, error){w.m.Prepare, w.o.Prepare} {
		if p, err := prepare(); err != nil || p.Fault != nil {
			t.Fatal(p.Fault, err)
		}
	}
	return w
}

// gradients returns those of the trained parameters and, for each, whether it is in bf16.
func (w *weighings) gradients() (x []float32, types []manifest.DType) {
	w.Helper()
	grads := &w.m.players[0].grads
	if err := w.m.pull(&grads.block); err != nil {
		w.Fatal(err)
	}
	narrow, wide := spans(*grads)
	for _, r := range []ortgraphs.Range{narrow, wide} {
		for range r.Len() {
			types = append(types, grads.span(r).DType)
		}
		if r.Len() > 0 {
			x = append(x, grads.numbers(r)...)
		}
	}
	return x, types
}

// window ends a window of a batch with such a loss, weight and gradients.
func (w *weighings) window(loss, weight float32, gradient func(i int) float32) (norm float64, updated bool) {
	w.Helper()
	grads := &w.m.players[0].grads
	if err := w.m.mirror(&grads.block); err != nil {
		w.Fatal(err)
	}
	narrow, wide := spans(*grads)
	i := 0
	for _, r := range []ortgraphs.Range{narrow, wide} {
		x := make([]float32, r.Len())
		for at := range x {
			x[at] = gradient(i)
			i++
		}
		if s := grads.span(r); r.Len() > 0 {
			setNumbers(grads.host[s.Offset:][:s.Bytes()], s.DType, x)
		}
	}
	*w.m.loss.value, *w.m.weight.value = loss, weight
	if err := errors.Join(w.m.push(&grads.block), w.m.send(w.m.out), w.o.Accumulate(true)); err != nil {
		w.Fatal(err)
	}
	return step(w.T, w.m, w.o, 0)
}

// TestWeighingByHand: gradients that are not accumulated are shared in their types, times the weight of their batch,
// with the weight and the weighted loss. Of a batch without weight only zeros are. The norm and the gradients that are
// reported are means.
func TestWeighingByHand(t *testing.T) {
	for name, kernels := range map[string]map[string]func([]uint64){"CPU": nil, "graph": {}, "kernel": fakeWeighs(0)} {
		for _, precision := range []manifest.DType{manifest.F32, manifest.BF16} {
			t.Run(fmt.Sprint(name, " ", precision), func(t *testing.T) {
				d := Device{}
				if kernels != nil {
					d, _ = fakeWith(t, kernels)
				}
				w := newWeighings(t, d, precision)
				if s := &w.o.window.share.weigh; (s.kernel != nil) != (name == "kernel") ||
					(s.kernel != nil) != (len(s.gradients) == 0) {
					t.Fatalf("a kernel: %v, and %d runs of the graph", s.kernel != nil, len(s.gradients))
				}
				for _, weight := range []float32{613, 0.1, 0} {
					w.weighsSpecial(weight)
					w.reportsMeans(weight)
				}
			})
		}
	}
}

// special are gradients that a product may get wrong.
var special = []float32{
	1, -3, 1e-40, 3e38, 0, float32(math.Copysign(0, -1)), float32(math.NaN()), float32(math.Inf(1)),
	float32(math.Inf(-1)),
}

func (w *weighings) weighsSpecial(weight float32) {
	w.Helper()
	gradient := func(i int) float32 { return special[i%len(special)] }
	_, updated := w.window(float32(math.NaN()), weight, gradient)
	all, types := w.gradients()
	for i, got := range all {
		want := inType(kernels.Weighed(inType(gradient(i), types[i]), weight), types[i])
		if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
			w.Fatalf("weight %g: gradient %d, %g, becomes %g, want %g", weight, i, gradient(i), got, want)
		}
	}
	if loss := *w.o.window.loss.value; updated || (loss == 0) != (weight == 0) || *w.o.window.weight.value != weight {
		w.Errorf("weight %g: updated %v, sums %g and %g", weight, updated, loss, *w.o.window.weight.value)
	}
	elements, sums := 0, w.parts
	for ; sums[0].Elements > 1; sums = sums[1:] {
		elements += sums[0].Elements
	}
	if elements != len(all) || w.parts[0].DType != types[0] || sums[0].DType != manifest.F32 {
		w.Errorf("%d of %d gradients are shared, the first in %s", elements, len(all), w.parts[0].DType)
	}
}

func (w *weighings) reportsMeans(weight float32) {
	w.Helper()
	random := rand.New(rand.NewPCG(1, 2))
	var drawn []float32
	got, updated := w.window(0.5, weight, func(int) float32 {
		drawn = append(drawn, float32(random.NormFloat64()))
		return drawn[len(drawn)-1]
	})
	if updated != (weight > 0) || *w.o.window.loss.value != 0.5*weight {
		w.Errorf("weight %g: updated %v, loss %g", weight, updated, *w.o.window.loss.value)
	}
	if weight == 0 {
		return
	}
	limit := 1e-6
	if w.precision == manifest.BF16 {
		limit = 1.0 / (1 << 8)
	}
	if math.Abs(got/norm(drawn)-1) > limit {
		w.Errorf("weight %g: norm %g, want %g", weight, got, norm(drawn))
	}
	reported, err := w.o.Gradients()
	if err != nil {
		w.Fatal(err)
	}
	sums := gradients(w.T, w.m)
	for i, x := range reported {
		mean, sum := numbers(x.Data, x.DType), numbers(sums[i].Data, x.DType)
		for at, v := range mean {
			if !(math.Abs(float64(v*weight-sum[at])) <= limit*math.Abs(float64(sum[at]))) {
				w.Fatalf("weight %g: %s is reported as %g, want %g/%g", weight, x.Name, v, sum[at], weight)
			}
		}
	}
}
