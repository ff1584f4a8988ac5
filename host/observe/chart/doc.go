// Package chart draws figures of runs as SVG, for a page that has no script: curves over steps, bars, and parts of a
// whole. Colours are classes (c1 to c7 fill, l1 to l7 lines), so that the page's style sheet has them in light and
// dark. Each chart has a title and a description with its numbers for a reader who does not see it.
//
//	p := chart.Plot{Title: "Loss", Describe: "from 2.9 to 0.8", XName: "step", Lines: []chart.Line{{...}}}
//	html := p.SVG()
//
// All text may come from strangers: it is escaped, and control characters are visible. Numbers may be anything: those
// that are not finite are left out.
package chart
