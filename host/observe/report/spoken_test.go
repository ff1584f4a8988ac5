package report

import (
	"strings"
	"testing"
)

// TestSpokenLine: the line about the samples says how many sentences were spoken.
func TestSpokenLine(t *testing.T) {
	for want, s := range map[string]*Spoken{
		"":                            nil,
		"none of the 200 sentences\n": {Sentences: 200},
		"2 sentences at 3 evaluations, the last in " +
			"samples/step-000006\n": {
			Sentences: 2, Steps: []int64{2, 4, 6}, Files: 6, Last: "samples/step-000006", LastFiles: 2,
		},
		"403 sentences at 3 evaluations of 200 each, the last in samples/step-000006 with " +
			"3\n": {
			Sentences: 200, Steps: []int64{2, 4, 6}, Files: 403, Last: "samples/step-000006", LastFiles: 3,
		},
		"1 sentence at 1 evaluation of 2 each, the last in samples/step-000006 with 1; 1 not complete: log.jsonl " +
			"says " +
			"why\n": {
			Sentences: 2, Steps: []int64{6}, Files: 1, Last: "samples/step-000006", LastFiles: 1, Incomplete: 1,
		},
	} {
		table := &table{room: 200}
		if table.spoken(s); strings.TrimPrefix(table.b.String(), "  spoken          ") != want {
			t.Errorf("%q, want %q", table.b.String(), want)
		}
	}
}
