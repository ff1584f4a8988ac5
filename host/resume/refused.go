package resume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/report"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// RefusedError refuses to resume with other settings than those that the run was started with.
type RefusedError struct {
	// Path is the checkpoint's folder.
	Path    string
	Refused []Difference
	// Allowed is what --allow named.
	Allowed []string
	// Lost are the lines of the training list that the run could use and that cannot be used now, each with the reason.
	Lost []string
}

// maxListed is how many differences an error lists.
const maxListed = 20

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the run was started with other settings:", e.Path)
	for _, d := range e.Refused[:min(maxListed, len(e.Refused))] {
		switch {
		case d.Name == "data" && len(e.Lost) > 0:
			b.WriteString(e.lost())
		case d.Name == "data":
			b.WriteString("\n  " + d.String() + " (hashes of the clips and texts, which have changed)")
		case d.Name != "data/recordings" || len(e.Lost) == 0: // another hash says nothing beside the names
			b.WriteString("\n  " + d.String())
		}
	}
	if n := len(e.Refused) - maxListed; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	return b.String()
}

// lost names the lines that are lost.
func (e *RefusedError) lost() string {
	text := fmt.Sprintf("\n  data: %s of the list cannot be used any more:", report.Count(len(e.Lost), "line"))
	for _, line := range e.Lost[:min(maxListed, len(e.Lost))] {
		text += "\n    " + line
	}
	if n := len(e.Lost) - maxListed; n > 0 {
		text += fmt.Sprintf("\n    and %d more", n)
	}
	return text
}

// Hint names the list for --allow that accepts the differences, or says what can never change and why.
func (e *RefusedError) Hint() string {
	var never []string
	allow := slices.Clone(e.Allowed)
	for _, d := range e.Refused {
		name := d.setting()
		why := settings[name].never
		if _, known := settings[name]; !known {
			why = "this program does not know what a change of it means"
		}
		if text := name + " can never change: " + why; why != "" && !slices.Contains(never, text) {
			never = append(never, text)
		}
		if why == "" && !slices.Contains(allow, name) {
			allow = append(allow, name)
		}
	}
	if never != nil {
		return strings.Join(never, "; ") + "; a new run can start from these weights with --init " + hint.Path(e.Path)
	}
	if len(e.Lost) > 0 {
		return "put the recordings back, or accept the change with --allow " + strings.Join(allow, ",") + " (docs/resume.md)"
	}
	return "leave them as they were, or accept the change with --allow " + strings.Join(allow, ",") + " (docs/resume.md)"
}
