package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/data/dataset"
	"github.com/xtts-host/xtts-host/host/observe/report"
	"github.com/xtts-host/xtts-host/host/run/plan"
)

// maxCharacters limits the characters that a line names.
const maxCharacters = 4

// byCount sorts characters, the most frequent first.
func byCount(found []dataset.UnknownChar) []dataset.UnknownChar {
	found = slices.Clone(found)
	slices.SortStableFunc(found, func(a, b dataset.UnknownChar) int { return cmp.Compare(b.Count, a.Count) })
	return found
}

// characters counts characters and names the most frequent.
func characters(found []dataset.UnknownChar) string {
	found = byCount(found)
	total := 0
	var names []string
	for i, c := range found {
		total += c.Count
		if i < maxCharacters {
			names = append(names, fmt.Sprintf("%#U (%d, first in %s)", c.Char, c.Count, c.Place))
		}
	}
	if more := len(found) - maxCharacters; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s: %s", units.Count(total, "character"), strings.Join(names, ", "))
}

// spelling suggests what to do about unknown characters.
func spelling(found []dataset.UnknownChar) string {
	var advice []string
	digits := false
	for _, c := range byCount(found) {
		switch {
		case c.Instead != 0 && len(advice) < maxCharacters:
			advice = append(advice, fmt.Sprintf("%#U instead of U+%04X", c.Instead, c.Char))
		case c.Instead == 0 && unicode.IsDigit(c.Char):
			digits = true
		}
	}
	if digits {
		advice = append(advice, "numbers in words")
	}
	if advice == nil {
		return "spell them with characters it knows"
	}
	return "write " + strings.Join(advice, ", ")
}

// maxReportedCharacters limits the characters of a list in report and log: a list in another script has few more, and a
// list that is not text has any number.
const maxReportedCharacters = 200

// unknownCharacters lists the characters that the tokenizer does not know, the most frequent first, for the report.
func unknownCharacters(p *plan.Plan) []report.UnknownCharacter {
	var out []report.UnknownCharacter
	for _, s := range p.Data.Splits() {
		as := "unknown"
		if s.Index.ByteFallback {
			as = "bytes"
		}
		found := byCount(s.Index.Unknown)
		for _, c := range found[:min(len(found), maxReportedCharacters)] {
			out = append(out, report.UnknownCharacter{
				Split: s.Name, Char: string(c.Char), Code: fmt.Sprintf("U+%04X", c.Char), Count: c.Count,
				First: c.Place, As: as,
			})
		}
	}
	return out
}
