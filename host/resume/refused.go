package resume

import (
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// RefusedError refuses to resume with other settings than those that the run was started with.
type RefusedError struct {
	// Path is the checkpoint's folder.
	Path    string
	Refused []Difference
	// Allowed is what --allow named.
	Allowed []string
}

// maxListed is how many differences an error lists.
const maxListed = 20

func (e *RefusedError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: the run was started with other settings:", e.Path)
	for _, d := range e.Refused[:min(maxListed, len(e.Refused))] {
		b.WriteString("\n  " + d.String())
		if d.Name == "data" {
			b.WriteString(" (hashes of the clips and texts, which have changed)")
		}
	}
	if n := len(e.Refused) - maxListed; n > 0 {
		fmt.Fprintf(&b, "\n  and %d more", n)
	}
	return b.String()
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
	return "leave them as they were, or accept the change with --allow " + strings.Join(allow, ",") + " (docs/resume.md)"
}
