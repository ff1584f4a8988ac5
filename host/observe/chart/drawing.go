package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

// letter is the width of a letter or digit on a narrow page, where letters are larger than on a wide one.
const letter = 9.5

// widthOf is the room that a text needs.
func widthOf(s string) float64 { return letter * float64(fold.Width(s)) }

// fit cuts a text that has less room than it needs.
func fit(s string, room float64) string { return fold.Cut(visible.Short(s, 300), int(room/letter)) }

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

// close ends a picture. Lines keep their width when the page scales it; that is an attribute, since validators of HTML
// do not know the property of style sheets.
func (d *drawing) close() template.HTML {
	d.say("</svg>")
	return template.HTML(strings.ReplaceAll(d.String(), "<path ", `<path vector-effect="non-scaling-stroke" `))
}

func title(hint string) string {
	if hint == "" {
		return ""
	}
	return "<title>" + text(hint) + "</title>"
}
