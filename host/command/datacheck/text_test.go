package datacheck

import (
	"bufio"
	"strings"
	"testing"
)

// TestHistogram: empty bins between others are one line, and there are none at the ends.
func TestHistogram(t *testing.T) {
	var out strings.Builder
	w := text{out: bufio.NewWriter(&out)}
	w.distribution("duration", "s",
		Distribution{Histogram: Histogram{Start: 1, Width: 1, Counts: []int{2, 0, 0, 0, 1, 1}}})
	w.out.Flush()
	_, rows, _ := strings.Cut(out.String(), "\n")
	want := []string{"1 │" + strings.Repeat("█", 40) + " 2", "┆", "5 │" + strings.Repeat("█", 20) + " 1", "6 │" +
		strings.Repeat("█", 20) + " 1"}
	var got []string
	for line := range strings.Lines(rows) {
		got = append(got, strings.TrimSpace(line))
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, want %q", got, want)
	}
}
