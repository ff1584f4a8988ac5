package plugintest

import (
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

var marks = map[State]string{OK: "✓", Failed: "✗", Skipped: "-"}

// Print writes the checks of each stage, with the reason and a hint below those that failed, and then how many there
// were.
func (r *Result) Print(out io.Writer) {
	count := map[State]int{}
	for _, s := range r.Stages {
		fmt.Fprintf(out, "%s %s: stage %s (%s)\n", r.Plugin, visible.Text(r.Version), s.Name, s.Kind)
		for i, c := range s.Checks {
			count[c.State]++
			if c.State == Skipped && c.Why == unstarted {
				if i+1 == len(s.Checks) {
					fmt.Fprintf(out, "  %s the other checks: %s\n", marks[Skipped], unstarted)
				}
				continue
			}
			fmt.Fprintf(out, "  %s %s\n", marks[c.State], c.Name)
			if c.SameAs != "" {
				fmt.Fprintf(out, "      the same reason as %q\n", c.SameAs)
				continue
			}
			if c.Why != "" {
				fmt.Fprintf(out, "      %s\n", visible.Text(c.Why))
			}
			for i, line := range c.Stderr {
				if i == 0 {
					fmt.Fprintln(out, "      its last lines on stderr:")
				}
				fmt.Fprintf(out, "        %s\n", visible.Text(line))
			}
			if c.Hint != "" {
				fmt.Fprintf(out, "      hint: %s\n", visible.Text(c.Hint))
			}
		}
		if s.ClipSeconds > 0 {
			fmt.Fprintf(out, "    %.2f ms for a clip of %g s\n", s.MillisecondsPerClip, s.ClipSeconds)
		}
		if s.PeakMemory > 0 {
			fmt.Fprintf(out, "    %d MiB of memory at most\n", s.PeakMemory>>20)
		}
	}
	fmt.Fprintf(out, "%s %s: %d passed, %d failed, %d not made\n", r.Plugin, visible.Text(r.Version), count[OK],
		count[Failed], count[Skipped])
}
