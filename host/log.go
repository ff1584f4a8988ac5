package host

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"

	"github.com/xtts-host/xtts-host/host/disk"
)

// runLog writes everything to log.jsonl, and warnings to people as well.
type runLog struct {
	*slog.Logger
	file *logFile
}

// logFile notes the first write that failed: slog drops errors, and a run must not go on unlogged.
type logFile struct {
	*os.File
	failed atomic.Pointer[error]
}

func (f *logFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	if err != nil {
		err = fmt.Errorf("log: %w", disk.Explain(err, f.Name(), int64(len(p))))
		f.failed.CompareAndSwap(nil, &err)
	}
	return n, err
}

// newLog writes to the log of a run folder, which the folder closes.
func newLog(f *os.File, console io.Writer) *runLog {
	file := &logFile{File: f}
	return &runLog{slog.New(slog.NewMultiHandler(slog.NewJSONHandler(file, nil), warnings{console})), file}
}

// Err returns the error of the first line that could not be written, or nil. It may be called by any goroutine.
func (l *runLog) Err() error {
	if err := l.file.failed.Load(); err != nil {
		return *err
	}
	return nil
}

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
