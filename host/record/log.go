package record

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/host/disk"
	"github.com/xtts-host/xtts-host/host/event"
	"github.com/xtts-host/xtts-host/shared/visible"
)

// Log writes every line to log.jsonl, and publishes warnings. As a required event.Sink it writes the lines of
// checkpoints, and ends the run if a line is lost. It may be used before it has a file.
type Log struct {
	*slog.Logger
	file *logFile
}

// logFile keeps the first failed write: slog drops errors, and a run must not continue without a log.
type logFile struct {
	file   atomic.Pointer[os.File]
	wait   atomic.Pointer[disk.Patience]
	failed atomic.Pointer[error]
}

func (l *logFile) Write(p []byte) (int, error) {
	f := l.file.Load()
	if f == nil {
		return len(p), nil
	}
	done := 0
	err := l.wait.Load().Retry(func() error {
		n, err := f.Write(p[done:])
		done += n
		return err
	})
	if err != nil {
		err = fmt.Errorf("log: %w", disk.Explain(err, f.Name(), int64(len(p)-done)))
		l.failed.CompareAndSwap(nil, &err)
	}
	return done, err
}

// NewLog returns a log that calls warn, from any goroutine, with each warning.
func NewLog(warn func(*event.Warning)) *Log {
	file := new(logFile)
	return &Log{slog.New(slog.NewMultiHandler(slog.NewJSONHandler(file, nil), Warnings(warn))), file}
}

// Open makes the log write to f from now on, and wait for a full disk as long as wait says. The caller closes f.
func (l *Log) Open(f *os.File, wait *disk.Patience) {
	l.file.wait.Store(wait)
	l.file.file.Store(f)
}

// Take implements event.Sink. It returns the error of the first line that could not be written.
func (l *Log) Take(events []event.Event) error {
	for _, e := range events {
		if c, ok := e.(*event.Checkpoint); ok && c.Err == nil {
			l.Info("checkpoint", "path", c.Path, "step", c.Step, "reason", c.Reason)
		}
	}
	if err := l.file.failed.Load(); err != nil {
		return *err
	}
	return nil
}

// Close implements event.Sink. It does not close the file, which belongs to the caller of Open.
func (l *Log) Close() error { return nil }

// Warnings is the slog.Handler that publishes warnings and errors as events.
type Warnings func(*event.Warning)

// Enabled implements slog.Handler.
func (Warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w Warnings) Handle(_ context.Context, r slog.Record) error {
	var attrs []string
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, fmt.Sprintf("%s %v", a.Key, a.Value))
		return true
	})
	text := r.Message
	if len(attrs) > 0 {
		text += " (" + strings.Join(attrs, ", ") + ")"
	}
	w(&event.Warning{Error: r.Level >= slog.LevelError, Text: visible.Lines("warning", text)})
	return nil
}

// WithAttrs and WithGroup implement slog.Handler. The attributes of a logger identify it in log.jsonl; a warning on the
// console names its subject itself.
func (w Warnings) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w Warnings) WithGroup(string) slog.Handler      { return w }
