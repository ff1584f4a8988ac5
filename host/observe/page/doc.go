// Package page writes report.html: one file that shows a run to a person, from what the run has written in its folder
// (package record). It needs no network and has no script, so it can be sent to anyone and opened anywhere.
//
//	err := page.Write("runs/first") // runs/first/report.html
//
// The folder may come from a stranger. Texts and names are escaped by html/template, control characters are visible, a
// policy in the page forbids every request, and sounds and pictures are taken only from regular files of the run's
// folders of samples and probes.
package page
