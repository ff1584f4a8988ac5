package schedule

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "regenerate docs/schedules.svg")

const picture = "../../../docs/schedules.svg"

// The picture's run, and the size of its plot.
const (
	steps, warmup            = 1000, 100
	left, top, width, height = 60, 20, 600, 240
)

// courses are the lines of the picture, with colours from dark to light, so that they differ also in grey.
var courses = []struct {
	Schedule
	colour, title string
	reductions    []int64 // steps
}{
	{Schedule{Name: Constant}, "#222222", "constant", nil},
	{Schedule{Name: Cosine}, "#0b5cad", "cosine", nil},
	{Schedule{Name: Linear}, "#b3261e", "linear", nil},
	{Schedule{Name: Exponential, Factor: 0.997}, "#2e7d32", "exponential, --lr-decay 0.997", nil},
	{
		Schedule{Name: Plateau, Factor: 0.5}, "#b26a00", "plateau, lowered after steps 350, 600 and 800",
		[]int64{350, 600, 800},
	},
}

// TestPicture: the picture in the documentation is drawn by the code that it explains.
func TestPicture(t *testing.T) {
	want := draw()
	if *update {
		if err := os.WriteFile(picture, want, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(picture); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the schedules are (%v): make generate writes it", picture, err)
	}
}

func draw() []byte {
	var b bytes.Buffer
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	x := func(step int64) float64 { return left + width*float64(step)/steps }
	y := func(share float64) float64 { return top + height*(1-share) }
	say(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 420" font-family="sans-serif" font-size="13">`)
	say(`<title>Learning rate of %d steps with %d steps of warm-up</title>`, steps, warmup)
	say(`<rect width="700" height="420" fill="#ffffff"/>`)
	for _, share := range []float64{0, 0.5, 1} {
		say(`<path d="M%d %.1fH%d" stroke="#dddddd"/>`, left, y(share), left+width)
		say(`<text x="%d" y="%.1f" text-anchor="end">%g lr</text>`, left-8, y(share)+4, share)
	}
	for _, step := range []int64{0, warmup, steps / 2, steps} {
		say(`<path d="M%.1f %dv6" stroke="#222222"/>`, x(step), top+height)
		say(`<text x="%.1f" y="%d" text-anchor="middle">%d</text>`, x(step), top+height+22, step)
	}
	for i, c := range courses {
		s, reductions := c.Schedule, 0
		s.BaseLR, s.WarmupSteps, s.DecayStart, s.TotalSteps = 1, warmup, warmup, steps
		points := ""
		for step := range int64(steps) {
			if reductions < len(c.reductions) && c.reductions[reductions] == step {
				reductions++
			}
			if step%5 == 0 || step == warmup-1 {
				points += fmt.Sprintf(" %.1f,%.1f", x(step), y(s.LR(step, reductions)))
			}
		}
		at := top + height + 44 + 20*i
		say(`<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, points[1:], c.colour)
		say(`<path d="M%d %dh24" stroke="%s" stroke-width="2"/>`, left, at, c.colour)
		say(`<text x="%d" y="%d">%s</text>`, left+32, at+4, c.title)
	}
	say(`</svg>`)
	return b.Bytes()
}
