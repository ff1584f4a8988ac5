package plan

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
		{free: 4*size - 1, keepLast: 3, want: "has 400 MiB free, and a checkpoint takes 100 MiB: 400 MiB have room for those of --keep-last 3 and the one that is written next"},
		{free: 4 * size, keepLast: 3, best: true, want: "500 MiB have room for those of --keep-last 3 and the one that is written next, and the best one"},
		{free: size, keepLast: 0},
		{free: size - 1, keepLast: 0, want: "100 MiB have room for the one that is written next"},
	} {
		lines := roomFor(tt.free, size, tt.keepLast, tt.best)
		if (len(lines) == 0) != (tt.want == "") || len(lines) > 0 && !strings.Contains(lines[0], tt.want) {
			t.Errorf("%+v: %q", tt, lines)
		}
	}
}
