package doctor

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
)

// load describes the load of a card, as far as its driver reports it.
func load(c gpu.Card) string {
	text := ""
	if c.Utilization != nil {
		text += fmt.Sprintf(", %.0f %% busy", 100*c.Utilization.GPU)
	}
	switch n := len(c.Processes); n {
	case 0:
	case 1:
		text += ", 1 process"
	default:
		text += fmt.Sprintf(", %d processes", n)
	}
	return text
}

// size formats an amount of memory; all ones means unlimited.
func size(n uint64) string {
	switch {
	case n == unlimited:
		return "unlimited"
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d MB", n/gpu.MB)
}
