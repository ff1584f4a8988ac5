package host

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// runLog writes everything to log.jsonl, and warnings to people as well.
type runLog struct {
	*slog.Logger
	file *os.File
}

func openLog(dir string, console io.Writer) (*runLog, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log.jsonl"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("log: %w", err)
	}
	// One process at a time writes to a run's folder. The lock goes with the process, however it ends.
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, refusal{hint.Errorf("wait for it, or stop it with Ctrl-C", "%s: another process is training in this folder", dir)}
	}
	return &runLog{slog.New(slog.NewMultiHandler(slog.NewJSONHandler(f, nil), warnings{console})), f}, nil
}

// Close closes the file.
func (l *runLog) Close() error { return l.file.Close() }

// warnings is the slog.Handler of a console: a line for each warning or error, "warning: message (key value, ...)".
type warnings struct{ out io.Writer }

// Enabled implements slog.Handler.
func (warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	word := "warning"
	if r.Level >= slog.LevelError {
		word = "error"
	}
	var attrs []string
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, fmt.Sprintf("%s %v", a.Key, a.Value))
		return true
	})
	line := word + ": " + r.Message
	if len(attrs) > 0 {
		line += " (" + strings.Join(attrs, ", ") + ")"
	}
	_, err := fmt.Fprintln(w.out, line)
	return err
}

// WithAttrs and WithGroup implement slog.Handler. What a logger carries along identifies it in log.jsonl; a
// warning for people says so itself.
func (w warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w warnings) WithGroup(string) slog.Handler      { return w }
