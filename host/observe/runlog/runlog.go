// Package runlog writes log.jsonl, and makes events of the warnings among its lines. docs/report.md is the
// specification.
package runlog

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/event"
)

// Log writes every line to log.jsonl, and publishes warnings. As a required event.Sink it writes the lines of
// checkpoints, lowered rates, samples and an early stop, and ends the run if a line is lost. It may be used before it
// has a file.
type Log struct {
	*slog.Logger
	file     *logFile
	warnings *Warnings
}

// maxPending limits the lines that wait for the disk, in bytes.
const maxPending = 1 << 20

// logFile keeps lines that the disk did not take, for Take: who logs never waits for a disk. It keeps the first lasting
// failure too, since slog drops errors, and a run must not continue without a log.
type logFile struct {
	mu      sync.Mutex // guards the rest
	file    *files.File
	wait    *files.Patience
	pending []byte
	failed  error
}

// Write implements io.Writer for slog. It returns no error.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil || l.failed != nil {
		return len(p), nil
	}
	l.pending = append(l.pending, visible.JSON(p)...)
	if err := l.flush(); err != nil && (!files.MayPass(err) || len(l.pending) > maxPending) {
		l.fail(err)
	}
	return len(p), nil
}

func (l *logFile) flush() error {
	n, err := l.file.Write(l.pending)
	l.pending = l.pending[:copy(l.pending, l.pending[n:])]
	return err
}

func (l *logFile) fail(err error) {
	l.failed = fmt.Errorf("log: %w", disk.Explain(err, l.file.Name(), int64(len(l.pending))))
}

// finish writes the lines that wait, as soon as the disk takes them, or returns the error that lost a line.
func (l *logFile) finish() error {
	l.mu.Lock()
	wait, pending, failed := l.wait, len(l.pending) > 0, l.failed
	l.mu.Unlock()
	if !pending || failed != nil {
		return failed
	}
	err := wait.Retry(func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.flush()
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil && l.failed == nil {
		l.fail(err)
	}
	return l.failed
}

// New returns a log that calls warn, from any goroutine, with each warning of the host and the first ones of a plugin.
func New(warn func(*event.Warning)) *Log {
	file, warnings := new(logFile), NewWarnings(warn)
	warnings.most = mostOfPlugin
	return &Log{slog.New(slog.NewMultiHandler(slog.NewJSONHandler(file, nil), warnings)), file, warnings}
}

// Unshown returns a line for each plugin of which warnings were not published.
func (l *Log) Unshown() []string { return l.warnings.unshown() }

// Open makes the log write to f from now on, and wait for a full disk as long as wait says. The caller closes f.
func (l *Log) Open(f *files.File, wait *files.Patience) {
	l.file.mu.Lock()
	defer l.file.mu.Unlock()
	l.file.file, l.file.wait = f, wait
}

// WarnOf warns of each text but empty ones.
func (l *Log) WarnOf(texts ...string) {
	for _, text := range texts {
		if text != "" {
			l.Warn(text)
		}
	}
}

// Take implements event.Sink. It waits for the disk, and returns the error of the first line that could not be written.
func (l *Log) Take(events []event.Event) error {
	for _, e := range events {
		switch e := e.(type) {
		case *event.Checkpoint:
			if e.Err == nil {
				l.Info("checkpoint", "path", e.Path, "step", e.Step, "reason", e.Reason)
			}
		case *event.Lowered:
			args := []any{"step", e.Step, "lr", e.LR}
			if e.Player != "" {
				args = append(args, "player", e.Player)
			}
			l.Info("learning rate lowered", args...)
		case *event.Adapted:
			l.Info("adapted", "step", e.Step, "what", e.What, "from", e.From, "to", e.To, "why", e.Why)
		case *event.Finish:
			if stop := e.EarlyStop; stop != nil {
				l.Info("stopped early", "step", stop.Step, "evaluations", stop.Evaluations)
			}
		case *event.Spoken:
			l.Info("samples spoken", "step", e.Step, "folder", e.Folder, "samples", e.Samples, "s", e.Time.Seconds())
		}
	}
	return l.file.finish()
}

// Close implements event.Sink. It does not close the file, which belongs to the caller of Open.
func (l *Log) Close() error { return l.file.finish() }
