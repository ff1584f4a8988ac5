package plugintry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// says writes what plugins print and log, as a run has it in log.jsonl: a line each, after the name of the plugin.
type says struct {
	out    io.Writer
	one    *sync.Mutex // line at a time
	plugin string
}

// Says returns a log of plugins for a person.
func Says(out io.Writer) *slog.Logger { return slog.New(&says{out: out, one: new(sync.Mutex)}) }

// Enabled implements slog.Handler.
func (*says) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// Handle implements slog.Handler.
func (s *says) Handle(_ context.Context, r slog.Record) error {
	text := strings.TrimPrefix(r.Message, "plugin "+s.plugin+": ")
	switch {
	case r.Level >= slog.LevelError:
		text = "error: " + text
	case r.Level >= slog.LevelWarn:
		text = "warning: " + text
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "stack" {
			text += "\n" + a.Value.String()
		} else {
			text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
		return true
	})
	s.one.Lock()
	defer s.one.Unlock()
	for line := range strings.Lines(text) {
		if s.plugin != "" { // the host itself says the rest
			line = s.plugin + ": " + line
		}
		visible.Fprintf(s.out, "%s\n", strings.TrimSuffix(line, "\n"))
	}
	return nil
}

// WithAttrs implements slog.Handler. The host names the plugin of all that follows.
func (s *says) WithAttrs(attrs []slog.Attr) slog.Handler {
	with := *s
	for _, a := range attrs {
		if a.Key == "plugin" {
			with.plugin = a.Value.String()
		}
	}
	return &with
}

// WithGroup implements slog.Handler.
func (s *says) WithGroup(string) slog.Handler { return s }
