package chart

import (
	"fmt"
	"html"
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
}

// The box of a plot, in units of which a page shows 1.1 pixels or so.
const (
	width, height            = 480.0, 250.0
	left, right, top, bottom = 54.0, 468.0, 34.0, 212.0
	letter                   = 8.0 // the width of a letter on a narrow page, where letters are larger
)

// drawing is an SVG document that is being written.
type drawing struct{ strings.Builder }

// say writes markup. All its arguments are numbers, classes of this package, or went through text.
func (d *drawing) say(format string, args ...any) { fmt.Fprintf(&d.Builder, format+"\n", args...) }

// text makes a text of anyone part of a document.
func text(s string) string { return html.EscapeString(visible.Short(s, 300)) }

// open begins a picture.
func (d *drawing) open(title, describe string, height float64) {
	d.say(`<svg class="chart" viewBox="0 0 %g %g" role="img" aria-label="%s">`, width, math.Ceil(height),
		text(strings.TrimSuffix(title, ".")+". "+describe))
}

func (d *drawing) close() template.HTML {
	d.say("</svg>")
	return template.HTML(d.String())
}

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
	x := newAxis(xs, false, 0, left, right)
	if p.Inset {
		x.from, x.to = left+30, right-30
	}
	y := newAxis(ys, p.FromZero, p.LogFrom, bottom, top)
	p.axes(&d, x, y)
	if len(xs) == 0 {
		d.say(`<text class="muted" x="%g" y="%g" text-anchor="middle">no values</text>`, (left+right)/2, (top+bottom)/2)
	}
	for i := range p.Lines {
		p.Lines[i].draw(&d, x, y)
	}
	p.legend(&d, y.log)
	return d.close()
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func (p Point) hasInterval() bool {
	return (p.Low != 0 || p.High != 0) && finite(p.Low) && finite(p.High)
}

func (p *Plot) axes(d *drawing, x, y axis) {
	format := p.XFormat
	if format == nil {
		format = Short
	}
	for _, v := range y.ticks() {
		at := y.at(v)
		d.say(`<path class="grid" d="M%g %sH%g"/>`, left, place(at), right)
		d.say(`<text x="%g" y="%s" text-anchor="end">%s</text>`, left-6, place(at+4), text(Short(v)))
	}
	last := -1e9
	for _, v := range x.ticks() {
		at, label := x.at(v), format(v)
		if p.Whole && v != math.Trunc(v) || at-last < letter*float64(len(label)+1) {
			continue // there is no room
		}
		last = at
		anchor := "middle"
		if at > right-letter*float64(len(label))/2 {
			anchor = "end"
		}
		d.say(`<path class="grid" d="M%s %gV%g"/>`, place(at), bottom, bottom+4)
		d.say(`<text x="%s" y="%g" text-anchor="%s">%s</text>`, place(min(at, right)), bottom+18, anchor, text(label))
	}
	d.say(`<path class="axis" d="M%g %gH%g"/>`, left, bottom, right)
	d.say(`<text class="muted" x="%g" y="%g" text-anchor="middle">%s</text>`, (left+right)/2, bottom+34, text(p.XName))
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
		at += 21 + letter*float64(len([]rune(name))) + 14
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

func (l *Line) draw(d *drawing, x, y axis) {
	var path strings.Builder
	pen := "M"
	var dots drawing
	for _, p := range l.Points {
		if !finite(p.X) || !finite(p.Y) || y.log && p.Y <= 0 {
			pen = "M" // a gap
			continue
		}
		px, py := place(x.at(p.X)), place(y.at(p.Y))
		path.WriteString(pen + px + " " + py)
		pen = "L"
		if p.hasInterval() {
			dots.say(`<path class="l%d" d="M%s %sV%s"/>`, l.Color, px, place(y.at(p.Low)), place(y.at(p.High)))
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

func title(hint string) string {
	if hint == "" {
		return ""
	}
	return "<title>" + text(hint) + "</title>"
}
