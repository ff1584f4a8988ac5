package doctor

import (
	"fmt"

	"github.com/xtts-host/xtts-host/gpu"
)

// load words what a card does, as far as its driver knows.
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

// words tells of a placement.
func words(p gpu.Placement) string {
	text := fmt.Sprintf("plugins on %s, the model on %s", place(p.Data), place(p.Model))
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}

func place(s gpu.Seat) string {
	switch {
	case s.OnCPU():
		return "the CPU"
	case s.Limit > 0:
		return fmt.Sprintf("GPU %d (at most %d MB)", s.GPU.Index, s.Limit/gpu.MB)
	}
	return fmt.Sprintf("GPU %d", s.GPU.Index)
}

// size words an amount of memory; unlimited is all ones.
func size(n uint64) string {
	switch {
	case n == unlimited:
		return "unlimited"
	case n >= 10<<30:
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d MB", n/gpu.MB)
}
