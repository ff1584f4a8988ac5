package chart

import (
	"fmt"
	"html/template"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// Part is a part of a bar.
type Part struct {
	Name  string
	Value float64
	Text  string // the value for people
	Color int
}

// Bar is a row of Bars: its parts are side by side.
type Bar struct {
	Name  string
	Text  string // after the bar
	Parts []Part
	// Limit is a line across the bar; 0 for none.
	Limit float64
}

// Bars are rows of one scale.
type Bars struct {
	Title, Describe string
	Rows            []Bar
	// Largest is the end of the scale; 0 means that of the longest bar or limit.
	Largest float64
}

const (
	barRow    = 44.0 // height of a row
	barHeight = 18.0
	barStart  = 6.0
	barEnd    = 474.0
	cutRoom   = 3.0 // of a part that is not hidden by a line beside it
)

// SVG draws the bars.
func (b *Bars) SVG() template.HTML {
	var d drawing
	colors, names := legendOf(b.Rows)
	legend := legendRows(names)
	d.open(b.Title, b.Describe, float64(len(b.Rows))*barRow+4+legend*20)
	largest := b.Largest
	for _, r := range b.Rows {
		sum := 0.0
		for _, p := range r.Parts {
			sum += positive(p.Value)
		}
		if b.Largest == 0 {
			largest = max(largest, sum, positive(r.Limit))
		}
	}
	scale := func(v float64) float64 {
		if largest <= 0 {
			return barStart
		}
		return barStart + (barEnd-barStart)*min(1, positive(v)/largest)
	}
	for i, r := range b.Rows {
		r.draw(&d, float64(i)*barRow, scale)
	}
	at, y := barStart, float64(len(b.Rows))*barRow+14
	for i, name := range names {
		if at+need(name) > barEnd && at > barStart {
			at, y = barStart, y+20
		}
		d.say(`<rect class="c%d" x="%s" y="%s" width="11" height="11" rx="2"/>`, colors[i], place(at), place(y-10))
		d.say(`<text x="%s" y="%s">%s</text>`, place(at+16), place(y), text(name))
		at += need(name)
	}
	return d.close()
}

// positive is a value that can be drawn.
func positive(v float64) float64 {
	if !finite(v) || v < 0 {
		return 0
	}
	return v
}

func (r *Bar) draw(d *drawing, y float64, scale func(float64) float64) {
	name, cut := fit(r.Name, barEnd-barStart-widthOf(r.Text)-2*letter), ""
	if name != visible.Short(r.Name, 300) {
		cut = title(r.Name)
	}
	d.say(`<text x="%g" y="%s">%s%s</text>`, barStart, place(y+14), text(name), cut)
	d.say(`<text x="%g" y="%s" text-anchor="end">%s</text>`, barEnd, place(y+14), text(r.Text))
	d.say(`<rect class="track" x="%g" y="%s" width="%g" height="%g" rx="3"/>`, barStart, place(y+20), barEnd-barStart,
		barHeight)
	sum, before := 0.0, barEnd // where the part before it begins
	for _, p := range r.Parts {
		from := scale(sum)
		sum += positive(p.Value)
		hint := p.Text
		if p.Name != "" {
			hint = p.Name + ": " + p.Text
		}
		if wide := scale(sum) - from; wide > 0 {
			d.say(`<rect class="c%d" x="%s" y="%s" width="%.2f" height="%g">%s</rect>`, p.Color, place(from), place(y+20),
				wide, barHeight, title(hint))
			if from-before > cutRoom && wide > cutRoom { // neighbours whose colours are alike are two parts, too
				d.say(`<path class="cut" d="M%s %sv%g"/>`, place(from), place(y+20), barHeight)
			}
			before = from
		}
	}
	if r.Limit > 0 && finite(r.Limit) {
		for _, class := range []string{"halo", "limit"} {
			d.say(`<path class="%s" d="M%s %sv%g"/>`, class, place(scale(r.Limit)), place(y+17), barHeight+6)
		}
	}
}

// legendOf names the parts, each once, with the value of one that no other row has: a touch screen has no mouse that
// could rest on the part to show it.
func legendOf(rows []Bar) (colors []int, names []string) {
	at := map[string]int{}
	for _, r := range rows {
		for _, p := range r.Parts {
			if i, ok := at[p.Name]; ok {
				names[i] = p.Name
			} else if p.Name != "" {
				at[p.Name] = len(names)
				colors, names = append(colors, p.Color), append(names, strings.TrimSpace(p.Name+" "+p.Text))
			}
		}
	}
	return colors, names
}

func need(name string) float64 { return 16 + widthOf(name) + 16 }

func legendRows(names []string) (rows float64) {
	at := barEnd
	for _, name := range names {
		if at+need(name) > barEnd {
			at, rows = barStart, rows+1
		}
		at += need(name)
	}
	return rows
}

// Describe says the parts of a row: "wait 0.1 ms, train 69 ms".
func (r *Bar) Describe() string {
	var parts []string
	for _, p := range r.Parts {
		parts = append(parts, strings.TrimSpace(p.Name+" "+p.Text))
	}
	return fmt.Sprintf("%s: %s", r.Name, strings.Join(parts, ", "))
}
