package summary

import (
	"strings"
	"testing"
)

// TestRoom: there is room for the checkpoints that are kept, the next one and the best one.
func TestRoom(t *testing.T) {
	const size = 100 << 20
	for _, tt := range []struct {
		free     int64
		keepLast int
		best     bool
		want     string
	}{
		{free: 4 * size, keepLast: 3},
		{free: 4*size - 1, keepLast: 3, want: "has 400 MiB free, and the run has up to 4 checkpoints of 100 MiB at a " +
			"time, 400 MiB (--keep-last 3 and the next one)"},
		{
			free: 4 * size, keepLast: 3, best: true,
			want: "up to 5 checkpoints of 100 MiB at a time, 500 MiB (--keep-last 3, the next one and the best one)",
		},
		{free: 4*size - 1, keepLast: 1, best: true, want: "up to 4 checkpoints of 100 MiB at a time, 400 MiB " +
			"(--keep-last 1, the next one and the best one, and the last good one)"},
		{free: size, keepLast: 0},
		{free: size - 1, keepLast: 0, want: "has 100 MiB free, and the next checkpoint takes 100 MiB"},
	} {
		lines := roomFor(tt.free, size, tt.keepLast, tt.best)
		if (len(lines) == 0) != (tt.want == "") || len(lines) > 0 && !strings.Contains(lines[0], tt.want) {
			t.Errorf("%+v: %q", tt, lines)
		}
	}
}
