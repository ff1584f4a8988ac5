package chart

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
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
		`<path vector-effect="non-scaling-stroke" class="l2" d="M261.0 167.5V78.5"/>`,
		`<circle class="c2" cx="261.0" cy="123.0" r="3.5"><title>a\u202eb</title></circle>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if n := strings.Count(got, `r="2.5"`); n != 2 {
		t.Errorf("%d points between gaps have a dot, want 2:\n%s", n, got)
	}
	if p = (Plot{Title: "none", Describe: "no steps"}); !strings.Contains(string(p.SVG()), "no values") {
		t.Error("an empty plot does not say so")
	}
}

// TestRoom: labels of any length are in the picture and apart, also where letters are as wide as on a narrow page.
func TestRoom(t *testing.T) {
	for _, values := range [][]float64{{0, 1e-3}, {1.5e-6, 1e-3}, {-1e-3, 2e-3}, {-1e308, 1e308}, {0, 7}, {99, 99}} {
		p := Plot{Title: "Learning rate", Describe: "so much", XName: "value", Lines: []Line{
			{Points: []Point{{X: values[0], Y: values[0]}, {X: values[1], Y: values[1]}}},
		}}
		if values[1] == 7 {
			p.XFormat = func(v float64) string { return fmt.Sprintf("after %g hours", v) }
		}
		below := -1.0 // where the label below the axis ends, which comes from left to right
		for _, label := range labels(t, string(p.SVG())) {
			begin, end := label.span()
			if begin < 0 || end > width || label.y > height-5 {
				t.Errorf("%v: %q is from %g to %g at %g, outside", values, label.text, begin, end, label.y)
			}
			if label.y == bottom+20 {
				if begin < below {
					t.Errorf("%v: %q begins at %g, and the one before it ends at %g", values, label.text, begin, below)
				}
				below = end
			}
		}
	}
}

// written is a text of a picture.
type written struct {
	x, y         float64
	anchor, text string
}

func (w written) span() (begin, end float64) {
	wide := widthOf(w.text)
	switch w.anchor {
	case "end":
		return w.x - wide, w.x
	case "middle":
		return w.x - wide/2, w.x + wide/2
	}
	return w.x, w.x + wide
}

func labels(t *testing.T, svg string) (list []written) {
	t.Helper()
	form := regexp.MustCompile(`<text[^>]* x="([^"]+)" y="([^"]+)"(?: text-anchor="(\w+)")?>([^<]*)`)
	for _, m := range form.FindAllStringSubmatch(svg, -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		y, yerr := strconv.ParseFloat(m[2], 64)
		if err != nil || yerr != nil {
			t.Fatal(m)
		}
		list = append(list, written{x, y, m[3], m[4]})
	}
	return list
}

// TestEnds: lines have their names at their ends, apart from each other and above the axis.
func TestEnds(t *testing.T) {
	p := Plot{Title: "Loss", Describe: "of runs", XName: "step", Ends: true}
	for i, y := range []float64{1, 1.001, 1, 3, 2} {
		p.Lines = append(p.Lines, Line{Name: string(rune('A' + i)), Color: i + 1,
			Points: []Point{{X: 1, Y: 3}, {X: 9, Y: y}}})
	}
	p.Lines[4].Points = append(p.Lines[4].Points, Point{X: 10, Y: math.NaN()}) // not where it ends
	at := map[string]written{}
	for _, label := range labels(t, string(p.SVG())) {
		if label.y > 30 && len(label.text) == 1 && label.text >= "A" {
			at[label.text] = label
		}
	}
	if len(at) != 5 || at["D"].y > at["E"].y || at["E"].y > at["B"].y || at["A"].y > bottom || at["C"].y > bottom {
		t.Errorf("%v", at)
	}
	for a, one := range at {
		for b, other := range at {
			if _, end := one.span(); a != b && math.Abs(one.y-other.y) < 15 || end > width {
				t.Errorf("%s and %s: %v, %v", a, b, one, other)
			}
		}
	}
}

// TestManyEnds: names of lines that have no room go, of those whose lines end close together.
func TestManyEnds(t *testing.T) {
	for name, value := range map[string]func(i int) float64{
		"equal": func(int) float64 { return 1 }, "even": func(i int) float64 { return float64(i) },
		"one above":   func(i int) float64 { return float64(i / 19) },
		"one below":   func(i int) float64 { return float64(1 - i/19) },
		"one between": func(i int) float64 { return map[int]float64{0: 2, 1: 2, 19: 1}[i] },
	} {
		p := Plot{Title: "Loss", Describe: "of runs", XName: "step", Ends: true}
		for i := range 20 {
			p.Lines = append(p.Lines, Line{Name: string(rune('A' + i)), Color: i%7 + 1,
				Points: []Point{{X: 1, Y: 3}, {X: 9, Y: value(i)}}})
		}
		var ys []float64
		last := false
		for _, label := range labels(t, string(p.SVG())) {
			if label.x < right-endRoom || label.y < 20 && label.y > 16 || len(label.text) != 1 || label.text < "A" {
				continue
			}
			if label.y < top || label.y > bottom {
				t.Errorf("%s: %s is outside, at %g", name, label.text, label.y)
			}
			last = last || label.text == "T"
			ys = append(ys, label.y)
		}
		slices.Sort(ys)
		for i := range ys[1:] {
			if ys[i+1]-ys[i] < endApart-0.11 { // places have one decimal
				t.Errorf("%s: %v", name, ys)
			}
		}
		if len(ys) != 12 || strings.HasPrefix(name, "one") && !last {
			t.Errorf("%s: %d names, the one that is alone is there: %v", name, len(ys), last)
		}
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
		`<rect class="c6" x="123.0" y="20.0" width="117.00" height="18">`,
		`<path vector-effect="non-scaling-stroke" class="limit" d="M474.0 17.0v24"/>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in\n%s", want, got)
		}
	}
	if strings.Count(got, ">arenas<") != 1 || strings.Contains(got, "Inf") {
		t.Errorf("%s", got)
	}
	if !strings.Contains(got, `<path vector-effect="non-scaling-stroke" class="halo" d="M474.0 17.0v24"/>`) ||
		strings.Count(got, `<path vector-effect="non-scaling-stroke" class="cut" d="M123.0 20.0v18"/>`) != 1 ||
		strings.Count(got, `class="cut"`) != 1 {
		t.Errorf("no line between the parts, or no ground of the limit:\n%s", got)
	}
	if text := b.Rows[0].Describe(); text != "GPU 0: arenas 4 GiB, rest 4 GiB" {
		t.Errorf("%q", text)
	}
}

// TestNarrowBars: a name that has no room beside its value is cut, and shown where the mouse rests. The legend has the
// values of a single bar.
func TestNarrowBars(t *testing.T) {
	long := strings.Repeat("长", 60)
	b := Bars{Title: "A step", Describe: "69 ms", Rows: []Bar{
		{Name: long, Text: "69 ms", Parts: []Part{{Name: "wait", Value: 0.01, Text: "0.01 ms", Color: 4},
			{Name: "train", Value: 69, Text: "69 ms", Color: 1}}},
	}}
	got := string(b.SVG())
	all := labels(t, got)
	if _, end := all[0].span(); end > barEnd-widthOf("69 ms") || !strings.HasSuffix(all[0].text, "…") ||
		!strings.Contains(got, "<title>"+long+"</title>") {
		t.Errorf("%q ends at %g", all[0].text, end)
	}
	if all[2].text != "wait 0.01 ms" || all[3].text != "train 69 ms" || strings.Contains(got, `class="cut"`) {
		t.Errorf("%v\n%s", all, got)
	}
}
