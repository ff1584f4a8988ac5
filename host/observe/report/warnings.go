package report

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Warnings keeps the warnings of a process, also those before its first step, each once. Any goroutine may add one. The
// zero value has none.
type Warnings struct {
	mu   sync.Mutex
	list []string // the first that differ
}

// mostWarnings is the number of warnings in a report.
const mostWarnings = 100

// Add keeps a warning.
func (w *Warnings) Add(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.list) < mostWarnings && !slices.Contains(w.list, text) {
		w.list = append(w.list, text)
	}
}

// List returns the warnings in their order.
func (w *Warnings) List() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.list)
}

// NotComplete is the warning that an evaluation lacks some of its samples or probes, and why.
func NotComplete(what string, step int64, err error) string {
	text := fmt.Sprintf("the %s of step %d are not complete, and training goes on: %v", what, step, err)
	if advice := hint.Of(err); advice != "" {
		text += " (" + advice + ")"
	}
	return text
}

// NotFinite is how the warning of a step that is not finite begins.
func NotFinite(step int64) string { return fmt.Sprintf("step %d is not finite", step) }

// Traced reports whether a warning says where a step that is not finite comes from.
func Traced(warning string) bool {
	var step int64
	if n, _ := fmt.Sscanf(warning, "step %d", &step); n == 0 {
		return false
	}
	rest, found := strings.CutPrefix(warning, NotFinite(step))
	return found && !strings.HasPrefix(rest, ",") // ", and is not traced"
}
