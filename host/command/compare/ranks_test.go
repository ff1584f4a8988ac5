package compare

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var spaces = regexp.MustCompile(` +`)

// ranksRun makes a run of so many ranks; of 0, one that has not ended.
func ranksRun(t *testing.T, dir string, ranks int, settings string) string {
	t.Helper()
	text := reportOf(30, 1)
	switch {
	case ranks == 0:
		text = ""
	case ranks > 1:
		text = strings.Replace(text, "{", fmt.Sprintf(`{"process":{"rank":0,"of":%d},"ranks":[{"rank":0},{"rank":1}],`,
			ranks), 1)
	}
	return made{fmt.Sprint(ranks, " ", strings.Fields(settings)), 30, 100, 800, settings, text}.make(t, dir)
}

// TestRanks: the rows of a step decide if it is the same work, and not those of a rank.
func TestRanks(t *testing.T) {
	dir := t.TempDir()
	two4 := ranksRun(t, dir, 2, "batch_size: 4\naccumulate: 1\n")
	one8 := ranksRun(t, dir, 1, "batch_size: 8\naccumulate: 1\n")
	one4 := ranksRun(t, dir, 1, "batch_size: 4\n") // of an earlier version
	window := ranksRun(t, dir, 1, "batch_size: 4\naccumulate: 2\n")
	four := ranksRun(t, dir, 4, "batch_size: 4\naccumulate: 2\n")
	unknown := ranksRun(t, dir, 0, "batch_size: 4\naccumulate: 1\n")
	for _, c := range []struct {
		folders []string
		batches string   // of the remark; "" if there is none
		rows    []string // in the table
		ranks   bool     // in the table
		sweep   bool
	}{
		{[]string{two4, one8}, "", []string{"batch 4 x 2 ranks 8", "ranks 2 1"}, true, false},
		{[]string{window, one8}, "", []string{"batch 4 x 2 8"}, false, false},
		{[]string{two4, one4}, "A 4 x 2 ranks, B 4", nil, true, false},
		{[]string{one4, one8}, "A 4, B 8", nil, false, true},
		{[]string{four, one8}, "A 4 x 2 x 4 ranks, B 8", []string{"ranks 4 1"}, true, false},
		{[]string{two4, unknown}, "", nil, false, false},
		{[]string{one8, unknown}, "A 8, B 4", nil, false, true},
	} {
		r := of(opened(t, c.folders))
		said := ""
		for _, m := range r.Remarks {
			if text, ok := strings.CutPrefix(m.What, "the batches differ, so a step is not the same work: compare "+
				"frames/s, and losses at equal time: "); ok {
				said = text + affects(m)
			}
		}
		want := c.batches
		if want != "" {
			want += " (speed, losses)"
		}
		if sweep := r.Sweep != nil; sweep != c.sweep {
			t.Errorf("%s: a sweep is %v, want %v", c.folders, sweep, c.sweep)
		}
		if said != want {
			t.Errorf("the batches differ: %q, want %q", said, want)
		}
		text := spaces.ReplaceAllString(r.Text(80), " ")
		for _, row := range c.rows {
			if !strings.Contains(text, "\n"+row+"\n") {
				t.Errorf("there is no %q in\n%s", row, text)
			}
		}
		if has := strings.Contains(text, "\nranks "); has != c.ranks {
			t.Errorf("a row of ranks is %v, want %v in\n%s", has, c.ranks, text)
		}
	}
}
