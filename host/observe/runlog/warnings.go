package runlog

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Warnings is the slog.Handler that publishes warnings and errors as events.
type Warnings struct {
	warn   func(*event.Warning)
	most   int // to publish of what a plugin logs, of each kind; 0 for all
	count  *counts
	plugin string // whose lines these are, the attribute "plugin" of the logger; empty for those of the host
}

// mostOfPlugin is the number of lines of a plugin that a person sees among those of a run, which has all in log.jsonl.
const mostOfPlugin = 5

// counts has the numbers of warnings and errors of each plugin.
type counts struct {
	mu sync.Mutex
	of map[told]int
}

type told struct {
	plugin string
	fault  bool // an error
}

// NewWarnings returns a handler that calls warn with each warning, from any goroutine.
func NewWarnings(warn func(*event.Warning)) *Warnings {
	return &Warnings{warn: warn, count: &counts{of: map[told]int{}}}
}

// Enabled implements slog.Handler.
func (*Warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w *Warnings) Handle(_ context.Context, r slog.Record) error {
	if w.most > 0 && w.plugin != "" && w.count.take(told{w.plugin, r.Level >= slog.LevelError}) > w.most {
		return nil
	}
	var attrs []string
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, fmt.Sprintf("%s %v", a.Key, a.Value))
		return true
	})
	text := r.Message
	if len(attrs) > 0 {
		text += " (" + strings.Join(attrs, ", ") + ")"
	}
	w.warn(&event.Warning{Error: r.Level >= slog.LevelError, Text: visible.Lines("warning", text)})
	return nil
}

// take counts a warning, and returns the number so far.
func (c *counts) take(t told) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[t]++
	return c.of[t]
}

// unshown returns a line for each plugin of which warnings were not published.
func (w *Warnings) unshown() (lines []string) {
	w.count.mu.Lock()
	defer w.count.mu.Unlock()
	for t, n := range w.count.of {
		what := "more warning"
		if t.fault {
			what = "more error"
		}
		if more := n - w.most; more > 0 {
			lines = append(lines, fmt.Sprintf("plugin %s: %s in log.jsonl", t.plugin, units.Count(int64(more), what)))
		}
	}
	slices.Sort(lines)
	return lines
}

// WithAttrs implements slog.Handler. The attributes of a logger identify it in log.jsonl; a warning on the console
// names its subject itself.
func (w *Warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	for _, a := range attrs {
		if a.Key == "plugin" {
			return &Warnings{w.warn, w.most, w.count, a.Value.String()}
		}
	}
	return w
}

// WithGroup implements slog.Handler.
func (w *Warnings) WithGroup(string) slog.Handler { return w }
