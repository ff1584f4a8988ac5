package datacheck

import (
	"fmt"
	"math"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/report"
)

// shownText is the most bytes of a text in a line.
const shownText = 160

// text ends a line: a terminal may write Arabic script from right to left, and nothing else is then in its way.
func (l TextLine) text() string { return l.Line.text() + ": " + visible.Short(l.Text, shownText) }

func textLines(list []TextLine) func(i int) string {
	return func(i int) string { return list[i].text() }
}

func (f Form) text() string {
	return fmt.Sprintf("%s in %s, first in %s", f.Code, units.Count(f.Texts, "text"), f.First.text())
}

// textFindings writes what is unusual in the texts.
func (r *Report) textFindings(t text) {
	x := &r.Texts
	t.finding(len(x.Digits), math.MaxInt, "%s with digits, which no tokenizer reads out: "+
		"write them in words, for a model of XTTS with xtts-export clean-text",
		[]any{units.Count(len(x.Digits), "text")}, textLines(x.Digits))
	t.finding(len(x.DigitForms), math.MaxInt, "%s of digits", []any{units.Count(len(x.DigitForms), "kind")},
		func(i int) string {
			return x.DigitForms[i].text()
		})
	t.finding(len(x.LetterForms), math.MaxInt, "%s with several forms",
		[]any{units.Count(len(x.LetterForms), "letter")}, func(i int) string {
			var all []string
			for _, f := range x.LetterForms[i] {
				all = append(all, fmt.Sprintf("%s in %s", f.Code, units.Count(f.Texts, "text")))
			}
			rarest := x.LetterForms[i][len(x.LetterForms[i])-1]
			return fmt.Sprintf("%s (%s): the last first in %s", strings.Join(all, ", "), rarest.Language,
				rarest.First.text())
		})
	t.finding(len(x.Presentation), math.MaxInt,
		"%s with ligatures, presentation forms, fullwidth or halfwidth characters",
		[]any{units.Count(len(x.Presentation), "text")}, textLines(x.Presentation))
	t.finding(len(x.Invisible), math.MaxInt, "%s that cannot be seen",
		[]any{units.Count(len(x.Invisible), "character")}, func(i int) string {
			return x.Invisible[i].text()
		})
	t.finding(len(x.NonJoiner), math.MaxInt, "%s with and without a zero-width non-joiner",
		[]any{units.Count(len(x.NonJoiner), "word")}, func(i int) string {
			s := x.NonJoiner[i]
			return fmt.Sprintf("%s with, %d without, the rarer first in %s: %s", units.Count(s.WithCount, "time"),
				s.WithoutCount, s.First.Line.text(), s.With)
		})
	t.finding(len(x.Disguised), math.MaxInt, "%s with letters of two scripts that look alike",
		[]any{units.Count(len(x.Disguised), "word")}, func(i int) string {
			return fmt.Sprintf("%s: %q", x.Disguised[i].Line.text(), x.Disguised[i].Word)
		})
	letters := ""
	if len(x.Unwritten) > 0 { // the rule for letters needs a language
		letters = fmt.Sprintf("knows no letters of %s: name the language, as in --normalize all:fa",
			visible.Short(strings.Join(x.Unwritten, ", "), shownText))
	}
	switch {
	case x.Normalized > 0 && letters != "":
		fmt.Fprintf(t.out, "- %s that --normalize all would change; it %s\n", units.Count(x.Normalized, "text"),
			letters)
	case x.Normalized > 0:
		fmt.Fprintf(t.out, "- %s that --normalize all would change\n", units.Count(x.Normalized, "text"))
	case letters != "":
		fmt.Fprintf(t.out, "- --normalize all %s\n", letters)
	default:
		*t.clean++
	}
}

// validation writes what a run evaluates on, and what of it training lacks.
func (r *Report) validation(t text) {
	v := r.Validation
	if v == nil {
		return
	}
	amount := v.DataList.String()
	if v.Share > 0 {
		t.line("validation", "%s are held out by --val-share %g and not trained on (docs/data.md)", amount, v.Share)
	} else {
		t.line("validation", "%s in %s", amount, v.List)
	}
	for _, l := range v.Lines() {
		t.line("", "%s", l)
	}
	if v.FewAdvice != "" {
		t.line("", "%s", report.FewText(v.Clips)+": "+v.FewAdvice)
	}
	for _, c := range v.UnseenSpeakers {
		t.line("", "%s of speaker %q, of whom there is no training clip", units.Count(c.Clips, "clip"), c.Name)
	}
	for _, c := range v.UnseenLanguages {
		t.line("", "%s in language %q, in which there is no training clip", units.Count(c.Clips, "clip"), c.Name)
	}
}
