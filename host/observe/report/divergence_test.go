package report

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/host/observe/event"
)

func TestDivergence(t *testing.T) {
	const advice = ", grad_norm 7, learning rate 1.0e-03: lower --lr, clip gradients (--grad-clip), or lengthen " +
		"--warmup-steps"
	step := func(n int64, loss float64) *event.Step {
		return &event.Step{Step: n, Loss: loss, GradNorm: 7, LR: 1e-3, Rows: []int32{1}}
	}
	run := func(losses ...float64) (said []string) {
		var d Divergence
		for i, loss := range losses {
			d.Step(step(int64(i+1), loss), func(text string, _ ...any) { said = append(said, text) })
		}
		return said
	}
	flat := func(n int, loss float64) []float64 { return slices.Repeat([]float64{loss}, n) }
	for _, c := range []struct {
		name   string
		losses []float64
		want   []string
	}{
		{"falls", []float64{90, 50, 30, 20, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 2, 3, 4}, nil},
		{
			"second step", []float64{3.1, 537, 5810},
			[]string{"step 2: the loss is 537.0, 173 times that of the step before (3.100)" + advice},
		},
		{
			"explodes once", append(flat(20, 2), 19.9, 25, 26, 2, 2),
			[]string{"step 22: the loss is 25.00, 12 times the median of the last 21 steps (2.000)" + advice},
		},
		{"again, later", append(append(flat(20, 2), 30), append(flat(1000, 2), 40)...),
			[]string{
				"step 21: the loss is 30.00, 15 times the median of the last 20 steps (2.000)" + advice,
				"step 1022: the loss is 40.00, 20 times the median of the last 50 steps (2.000)" + advice,
			}},
		{
			"stays there", append(flat(20, 2), flat(2000, 30)...),
			[]string{"step 21: the loss is 30.00, 15 times the median of the last 20 steps (2.000)" + advice},
		},
		{
			"not finite", []float64{2, math.NaN(), math.Inf(1), 2},
			[]string{"step 2: the loss is not finite (NaN)" + advice},
		},
		{"below 0", append(flat(20, -2), 100), nil},
	} {
		if got := run(c.losses...); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	skipped, empty := step(1, 2), step(1, 0)
	skipped.Skipped, skipped.GradNorm = true, math.Inf(1)
	empty.Skipped, empty.Rows = true, nil
	var d Divergence
	d.Step(empty, func(text string, _ ...any) { t.Errorf("every row is empty: %s", text) })
	said := ""
	d.Step(skipped, func(text string, _ ...any) { said = text })
	if !strings.HasPrefix(said, "step 1: the gradients are not finite, grad_norm +Inf, ") {
		t.Error(said)
	}
	// The median is that of the last steps, whatever their order.
	for i := range int64(200) {
		d.keep(float64(i * 37 % 101))
		want := slices.Sorted(slices.Values(d.recent))
		if !slices.Equal(d.sorted, want) {
			t.Fatalf("after %d: %v, want %v", i, d.sorted, want)
		}
	}
}

func BenchmarkDivergence(b *testing.B) {
	var d Divergence
	w := &event.Step{Rows: []int32{1}}
	for i := range b.N {
		w.Step, w.Loss = int64(i), 2+float64(i*37%101)/100
		d.Step(w, nil)
	}
}

// TestNormalSteps: a step is normal if it is not skipped and its loss is not far above the level before it, which steps
// that explode do not raise, unless the loss stays there.
func TestNormalSteps(t *testing.T) {
	nan := math.NaN()
	flat := func(n int, loss float64) []float64 { return slices.Repeat([]float64{loss}, n) }
	for _, c := range []struct {
		name   string
		losses []float64
		normal int64
	}{
		{"no step", nil, 0},
		{"falls", []float64{90, 50, 30, 2, 3}, 5},
		{"skipped at the end", append(flat(8, 2), nan, nan), 8},
		{"one skipped", append(flat(8, 2), nan, 2), 10},
		{"explodes and stays finite", append(flat(8, 2), 1e3, 1e6, 1e5, 1e6, 1e7, 1e8, 1e7), 8},
		{"explodes from the start", []float64{2.9, 1.7e5, 2e6, 1.1e6, 4.9e5, 2.1e6, 1e9, nan}, 1},
		{"explodes again", []float64{2, 1e3, 1e3, 1e3, 2, 1e3, 1e4}, 5},
		{"falls again", append(flat(8, 2), 1e3, 1e3, 2), 11},
		{"another loss", append(flat(100, 2), flat(usualSteps, 1e3)...), 100 + usualSteps},
		{"not yet another loss", append(flat(100, 2), flat(usualSteps-1, 1e3)...), 100},
		{"below 0", append(flat(8, -2), 100, 200), 10},
	} {
		var d Divergence
		var normal int64
		for i, loss := range c.losses {
			w := &event.Step{Step: int64(i + 1), Loss: loss, Skipped: math.IsNaN(loss), Rows: []int32{1}}
			if d.Step(w, func(string, ...any) {}) {
				normal = w.Step
			}
		}
		if normal != c.normal || d.Normal() != c.normal {
			t.Errorf("%s: the last normal step is %d and %d, want %d", c.name, normal, d.Normal(), c.normal)
		}
	}
	for _, c := range []struct {
		name   string
		losses []float64
		steady int64
	}{
		{"falls to 1 and jumps to 8", slices.Concat(flat(20, 3), flat(80, 1), flat(200, 8)), 100},
		{"jumps to 30", slices.Concat(flat(20, 3), flat(80, 1), flat(200, 30)), 100},
		{"comes down", slices.Concat(flat(100, 1), flat(200, 8), flat(5, 2)), 305},
		{"an easy first step", slices.Concat(flat(1, 0.4), flat(60, 3)), 61},
		{"noise", slices.Concat(flat(60, 1), []float64{4, 2, 6, 3}), 64},
	} {
		var d Divergence
		for i, loss := range c.losses {
			if i == 150 {
				d = d.Next() // another process
			}
			d.Step(&event.Step{Step: int64(i + 1), Loss: loss, Rows: []int32{1}}, func(string, ...any) {})
		}
		if d.Steady() != c.steady {
			t.Errorf("%s: the last steady step is %d, want %d", c.name, d.Steady(), c.steady)
		}
	}
	var d Divergence
	empty := &event.Step{Step: 1, Skipped: true}
	if d.Step(empty, func(string, ...any) {}) || d.Normal() != 0 {
		t.Error("a step without rows says nothing of the weights before it")
	}
}
