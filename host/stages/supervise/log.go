package supervise

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

const (
	tailSize = 8 << 10   // number of bytes of the last lines that are kept
	maxLine  = 64 << 10  // maximum bytes of a log line; longer ones are split
	logRate  = 200       // maximum log lines per second
	logBytes = 128 << 10 // maximum bytes per second: room for one line of maximum length and more
	maxShown = 200       // maximum bytes of a field in error messages
	trace    = slog.LevelDebug - 4
)

// journal receives the output of one process: it keeps the last lines for error messages and passes all lines to the
// host's log. It is safe for concurrent use.
type journal struct {
	log    *slog.Logger // of the plugin's lines
	host   *slog.Logger // of what the host says about them
	plugin string

	mu    sync.Mutex // guards the rest
	tail  []byte
	words crashCause
	quota quota
	lines int // so far
}

func newJournal(log, host *slog.Logger, plugin string) *journal {
	return &journal{log: log, host: host, plugin: plugin, quota: quota{lines: logRate, bytes: logBytes}}
}

// last returns the last lines as text, at most tailSize bytes, after the line that says why the program ended if it is
// above them. Of a Go program that has crashed it returns the first lines of the dump.
func (j *journal) last() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	tail := string(j.tail)
	if fatal := j.words.fatal; fatal != "" && !strings.Contains(tail, j.words.first) {
		tail = fatal + "\n" + tail
	}
	return cmp.Or(j.words.dump(), tail)
}

// fatal reports whether the program has written why it ends.
func (j *journal) fatal() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.words.fatal != "" || j.words.part == complete
}

// written is the number of lines so far.
func (j *journal) written() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lines
}

// close reports lines that were dropped and not reported yet.
func (j *journal) close() {
	j.mu.Lock()
	dropped := j.quota.dropped
	j.quota.dropped = 0
	j.mu.Unlock()
	j.reportDropped(dropped)
}

func (j *journal) reportDropped(n int) {
	if n > 0 {
		j.host.Warn(fmt.Sprintf("plugin %s: log lines dropped: it wrote more than %d lines or %d KiB within a second",
			j.plugin, logRate, logBytes>>10),
			"lines", n)
	}
}

// escaped reports processes that had left the group of the plugin process and were ended after it.
func (j *journal) escaped(names []string) {
	if len(names) > 0 {
		j.host.Warn(visible.Text(fmt.Sprintf("plugin %s: left processes in other groups, which were ended: %s",
			j.plugin, strings.Join(names, ", "))))
	}
}

// line receives one line.
func (j *journal) line(line []byte) {
	level, message, attrs := parseLine(strings.ToValidUTF8(strings.TrimRight(string(line), "\r"), "\uFFFD"))
	message = visible.Text(message)
	for i, a := range attrs {
		attrs[i].Key = visible.Text(a.Key)
		if s, ok := a.Value.Any().(string); ok {
			attrs[i].Value = slog.StringValue(visible.Text(s))
		}
	}
	text := message
	if level != slog.LevelInfo || len(attrs) > 0 {
		text = strings.ToLower(level.String()) + ": " + message
		if level == trace {
			text = "trace: " + message
		}
		for _, a := range attrs {
			text += " " + visible.Short(a.String(), maxShown) // a stack is in the log
		}
	}
	j.mu.Lock()
	j.words.line(text)
	j.tail = append(append(j.tail, visible.Text(text)...), '\n')
	if over := len(j.tail) - tailSize; over > 0 {
		// Cut at the start of a line if there is one.
		if i := bytes.IndexByte(j.tail[over:], '\n'); i >= 0 && over+i+1 < len(j.tail) {
			over += i + 1
		}
		j.tail = append(j.tail[:0], j.tail[over:]...)
	}
	ok, dropped := j.quota.take(time.Now(), len(line))
	j.lines++
	j.mu.Unlock()
	j.reportDropped(dropped)
	if ok {
		if level >= slog.LevelWarn { // a person sees it among the messages of the host
			message = "plugin " + j.plugin + ": " + message
		}
		j.log.LogAttrs(context.Background(), level, message, attrs...)
	}
}

// writer returns a writer that cuts a stream into lines. It belongs to one goroutine.
func (j *journal) writer() *lineWriter { return &lineWriter{j: j} }

type lineWriter struct {
	j   *journal
	buf []byte
}

// Write never fails: a plugin must not depend on the host's log.
func (w *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\n')
		part := b
		if i >= 0 {
			part = b[:i]
		}
		part = part[:min(len(part), maxLine-len(w.buf))]
		w.buf = append(w.buf, part...)
		b = b[len(part):]
		if len(b) > 0 { // a line feed, or a line that is too long
			w.flush()
			if b[0] == '\n' {
				b = b[1:]
			}
		}
	}
	return n, nil
}

// flush passes on a last line without a line feed.
func (w *lineWriter) flush() {
	if len(w.buf) > 0 {
		w.j.line(w.buf)
		w.buf = w.buf[:0]
	}
}

// parseLine parses a line in hclog's JSON format (@level, @message, @timestamp and fields). Any other line is a message
// of level info. go-plugin's parser cannot be used, because it panics on "@message": 5.
func parseLine(text string) (slog.Level, string, []slog.Attr) {
	var fields map[string]any
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &fields) != nil {
		return slog.LevelInfo, text, nil
	}
	message, hasMessage := fields["@message"].(string)
	name, hasLevel := fields["@level"].(string)
	level, known := map[string]slog.Level{
		"trace": trace, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
		"error": slog.LevelError,
	}[name]
	if !hasMessage || !hasLevel || !known {
		return slog.LevelInfo, text, nil
	}
	var attrs []slog.Attr
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		if !strings.HasPrefix(key, "@") {
			attrs = append(attrs, slog.Any(key, fields[key]))
		}
	}
	return level, message, attrs
}
