package chart

import (
	"fmt"
	"html/template"
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// Point is a value of a curve. Hint is shown where the mouse rests on it; "" means none.
type Point struct {
	X, Y float64
	Hint string
	// Low and High are the ends of an interval; both are 0 without one.
	Low, High float64
}

// Line is a curve, or points.
type Line struct {
	Name   string
	Color  int // 1 to 7
	Points []Point
	Dashed bool
	// Dots marks each point. Alone leaves out the line between them.
	Dots, Alone bool
	// Thin is for a curve that is in the background, Faint for one behind others.
	Thin, Faint bool
}

// Plot is a diagram of lines.
type Plot struct {
	Title    string
	Describe string // says the numbers, for those who do not see it
	XName    string
	Lines    []Line
	// FromZero has the vertical axis begin at 0. Otherwise it is logarithmic if the values are positive and the largest
	// is at least LogFrom times the smallest; 0 means never.
	FromZero bool
	LogFrom  float64
	XFormat  func(float64) string // Short if it is nil
	Whole    bool                 // the horizontal axis counts something
	Inset    bool                 // points are not at the edges
	Ends     bool                 // lines also have their names at their ends: not only their colours tell them apart
}

// The box of a plot, in units of which a page shows 1.1 pixels or so, and a narrow one 0.7. Labels that need the room
// move its left side.
const (
	width, height            = 480.0, 259.0
	left, right, top, bottom = 54.0, 468.0, 34.0, 212.0
)

// SVG draws the plot.
func (p *Plot) SVG() template.HTML {
	var d drawing
	d.open(p.Title, p.Describe, height)
	var xs, ys []float64
	for _, l := range p.Lines {
		for _, at := range l.Points {
			if finite(at.X) && finite(at.Y) {
				xs, ys = append(xs, at.X), append(ys, at.Y)
				if at.hasInterval() {
					ys = append(ys, at.Low, at.High)
				}
			}
		}
	}
	y := newAxis(ys, p.FromZero, p.LogFrom, bottom, top)
	from, to := left, right
	for _, v := range y.ticks() {
		from = max(from, widthOf(Short(v))+10)
	}
	if p.Ends {
		to -= endRoom
	}
	x := newAxis(xs, false, 0, from, to)
	if p.Inset {
		x.from, x.to = from+30, to-30
	}
	p.axes(&d, x, y, from, to)
	if len(xs) == 0 {
		d.say(`<text class="muted" x="%g" y="%g" text-anchor="middle">no values</text>`, (from+to)/2, (top+bottom)/2)
	}
	for i := range p.Lines {
		p.Lines[i].draw(&d, x, y)
	}
	if p.Ends {
		p.ends(&d, x, y)
	}
	p.legend(&d, y.log)
	return d.close()
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (p Point) hasInterval() bool {
	return (p.Low != 0 || p.High != 0) && finite(p.Low) && finite(p.High)
}

// axes draws both axes of the box between two horizontal places.
func (p *Plot) axes(d *drawing, x, y axis, from, to float64) {
	format := p.XFormat
	if format == nil {
		format = Short
	}
	for _, v := range y.ticks() {
		at := y.at(v)
		d.say(`<path class="grid" d="M%g %sH%g"/>`, from, place(at), to)
		d.say(`<text x="%g" y="%s" text-anchor="end">%s</text>`, from-8, place(at+4), text(Short(v)))
	}
	last := -1e9 // where the label before it ends
	for _, v := range x.ticks() {
		at, label := x.at(v), format(v)
		wide := widthOf(label)
		begin, anchor := at-wide/2, "middle"
		if begin < 0 {
			begin, anchor = at, "start"
		} else if begin+wide > width {
			begin, anchor = at-wide, "end"
		}
		if p.Whole && v != math.Trunc(v) || begin < last+letter {
			continue // there is no room
		}
		last = begin + wide
		d.say(`<path class="grid" d="M%s %gV%g"/>`, place(at), bottom, bottom+4)
		d.say(`<text x="%s" y="%g" text-anchor="%s">%s</text>`, place(at), bottom+20, anchor, text(label))
	}
	d.say(`<path class="axis" d="M%g %gH%g"/>`, from, bottom, to)
	d.say(`<text class="muted" x="%g" y="%g" text-anchor="middle">%s</text>`, (from+to)/2, bottom+41, text(p.XName))
}

// legend names the lines, if they have names, and says that the axis is logarithmic.
func (p *Plot) legend(d *drawing, log bool) {
	at := left
	for _, l := range p.Lines {
		if l.Name == "" {
			continue
		}
		name := visible.Short(l.Name, 40)
		if l.Dots && l.Alone {
			d.say(`<circle class="c%d" cx="%s" cy="14" r="4"/>`, l.Color, place(at+8))
		} else {
			d.say(`<path class="l%d%s" d="M%s 14h16"/>`, l.Color, dashed(l.Dashed), place(at))
		}
		d.say(`<text x="%s" y="18">%s</text>`, place(at+21), text(name))
		at += 21 + widthOf(name) + 14
	}
	if log {
		d.say(`<text class="muted" x="%g" y="18" text-anchor="end">logarithmic</text>`, right)
	}
}

func dashed(is bool) string {
	if is {
		return " dashed"
	}
	return ""
}

// shown says that a point has a place.
func (l *Line) shown(p Point, y axis) bool {
	return finite(p.X) && finite(p.Y) && !(y.log && p.Y <= 0)
}

// single says that a point has no neighbour that is shown.
func (l *Line) single(i int, y axis) bool {
	return (i == 0 || !l.shown(l.Points[i-1], y)) && (i+1 == len(l.Points) || !l.shown(l.Points[i+1], y))
}

func (l *Line) draw(d *drawing, x, y axis) {
	var path strings.Builder
	pen := "M"
	var dots drawing
	for i, p := range l.Points {
		if !l.shown(p, y) {
			pen = "M" // a gap
			continue
		}
		px, py := place(x.at(p.X)), place(y.at(p.Y))
		path.WriteString(pen + px + " " + py)
		pen = "L"
		if p.hasInterval() {
			dots.say(`<path class="l%d" d="M%s %sV%s"/>`, l.Color, px, place(y.at(p.Low)), place(y.at(p.High)))
		}
		if !l.Dots && !l.Alone && l.single(i, y) { // a line of one point cannot be seen
			dots.say(`<circle class="c%d" cx="%s" cy="%s" r="2.5"/>`, l.Color, px, py)
		}
		if !l.Dots && p.Hint == "" {
			continue
		}
		class, r := fmt.Sprintf("c%d", l.Color), 3.5
		if !l.Dots { // only to rest the mouse on
			class, r = "touch", 7
		}
		dots.say(`<circle class="%s" cx="%s" cy="%s" r="%g">%s</circle>`, class, px, py, r, title(p.Hint))
	}
	if !l.Alone && path.Len() > 0 {
		thin := ""
		switch {
		case l.Faint:
			thin = " faint"
		case l.Thin:
			thin = " thin"
		}
		d.say(`<path class="l%d%s%s" d="%s"/>`, l.Color, thin, dashed(l.Dashed), path.String())
	}
	d.WriteString(dots.String())
}
