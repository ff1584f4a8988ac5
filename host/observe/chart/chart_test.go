package chart

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		values []float64
		zero   bool
		ratio  float64
		want   []float64
	}{
		{[]float64{0, 100}, false, 0, []float64{0, 20, 40, 60, 80, 100}},
		{[]float64{0.825, 2.872}, false, 0, []float64{1, 1.5, 2, 2.5}},
		{[]float64{0.825, 2.872}, false, 3, []float64{1, 2}},
		{[]float64{3, 7}, true, 3, []float64{0, 2, 4, 6}},
		{[]float64{1e-6, 1}, false, 30, []float64{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1}},
		{[]float64{-5, 5}, false, 3, []float64{-4, -2, 0, 2, 4}},
		{[]float64{7}, false, 3, []float64{6.5, 7, 7.5}},
		{[]float64{7, 7 + 1e-14}, false, 3, []float64{6.5, 7, 7.5}},
		{nil, false, 3, []float64{0, 0.2, 0.4, 0.6, 0.8, 1}},
	} {
		got := newAxis(c.values, c.zero, c.ratio, 0, 1).ticks()
		if !slices.EqualFunc(got, c.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }) {
			t.Errorf("%v: %v, want %v", c.values, got, c.want)
		}
	}
}

func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		values []float64
		ratio  float64
		v      float64
		want   float64
	}{
		{[]float64{0, 10}, 0, 2.5, 325}, {[]float64{1, 100}, 30, 10, 350}, {[]float64{-1e308, 1e308}, 0, 0, 350},
		{[]float64{1e-300, 1e300}, 30, 1, 350}, {[]float64{0, 10}, 0, 99, 400},
	} {
		if got := newAxis(c.values, false, c.ratio, 300, 400).at(c.v); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%g of %v is at %g, want %g", c.v, c.values, got, c.want)
		}
	}
	for v, want := range map[float64]string{
		0: "0", 0.30000000000000004: "0.3", 1200: "1200", 15_000: "15k", 2.5e6: "2.5M", 3e9: "3G", 2e-5: "2e-05",
		1.05e308: "1.05e+308",
	} {
		if got := Short(v); got != want {
			t.Errorf("%g is %s, want %s", v, got, want)
		}
	}
}

// TestPlot: values that are not finite are gaps, an interval is a line, and foreign text is text.
func TestPlot(t *testing.T) {
	p := Plot{Title: "Loss & more", Describe: "from 1 to 3.", XName: "step", Lines: []Line{
		{Name: "<a>", Color: 1, Points: []Point{{X: 0, Y: 1}, {X: 10, Y: math.NaN()}, {X: 20, Y: 3}}},
		{Name: "runs", Color: 2, Dots: true, Alone: true, Points: []Point{{X: 10, Y: 2, Low: 1.5, High: 2.5,
			Hint: "a\u202eb"}}},
	}}
	got := string(p.SVG())
	for _, want := range []string{
		`aria-label="Loss &amp; more. from 1 to 3."`, `d="M54.0 212.0M468.0 34.0"`, `&lt;a&gt;</text>`,
		`<path class="l2" d="M261.0 167.5V78.5"/>`, `<circle class="c2" cx="261.0" cy="123.0" r="3.5"><title>a\u202eb</title></circle>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if p = (Plot{Title: "none", Describe: "no steps"}); !strings.Contains(string(p.SVG()), "no values") {
		t.Error("an empty plot does not say so")
	}
}

// TestBars: the parts of the longest bar fill the scale from 6 to 474, and the limit is on it.
func TestBars(t *testing.T) {
	b := Bars{Title: "Memory", Describe: "8 of 16", Rows: []Bar{
		{Name: "GPU 0", Text: "8", Limit: 16, Parts: []Part{
			{Name: "arenas", Value: 4, Text: "4 GiB", Color: 1}, {Name: "rest", Value: 4, Text: "4 GiB", Color: 6},
		}},
		{Name: "GPU 1", Parts: []Part{{Name: "arenas", Value: math.Inf(1), Color: 1}, {Value: -3, Color: 2}}},
	}}
	got := string(b.SVG())
	for _, want := range []string{
		`<rect class="c1" x="6.0" y="20.0" width="117.00" height="18"><title>arenas: 4 GiB</title></rect>`,
		`<rect class="c6" x="123.0" y="20.0" width="117.00" height="18">`, `<path class="limit" d="M474.0 17.0v24"/>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Count(got, ">arenas<") != 1 || strings.Contains(got, "Inf") {
		t.Errorf("%s", got)
	}
	if text := b.Rows[0].Describe(); text != "GPU 0: arenas 4 GiB, rest 4 GiB" {
		t.Errorf("%q", text)
	}
}
