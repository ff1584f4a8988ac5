package supervise

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	tailSize = 8 << 10   // bytes of the last lines that are kept
	maxLine  = 64 << 10  // bytes of a log line; longer ones are cut into several
	logRate  = 200       // lines per second that are logged,
	logBytes = 128 << 10 // and bytes: a line of the longest kind, with room
	trace    = slog.LevelDebug - 4
)

// journal takes in what one process writes: it keeps the last lines for error messages and passes them on to
// the host's log. It is safe for concurrent use.
type journal struct {
	log *slog.Logger

	mu    sync.Mutex // guards the rest
	tail  []byte
	quota quota
}

func newJournal(log *slog.Logger) *journal {
	return &journal{log: log, quota: quota{lines: logRate, bytes: logBytes}}
}

// last returns the last lines as text, at most tailSize bytes.
func (j *journal) last() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.tail)
}

// line takes in one line.
func (j *journal) line(line []byte) {
	level, message, attrs := parseLine(strings.ToValidUTF8(strings.TrimRight(string(line), "\r"), "\uFFFD"))
	text := message
	if level != slog.LevelInfo || len(attrs) > 0 {
		text = strings.ToLower(level.String()) + ": " + message
		if level == trace {
			text = "trace: " + message
		}
		for _, a := range attrs {
			text += " " + a.String()
		}
	}
	j.mu.Lock()
	j.tail = append(append(j.tail, text...), '\n')
	if over := len(j.tail) - tailSize; over > 0 {
		// Cut at a line's start where there is one.
		if i := bytes.IndexByte(j.tail[over:], '\n'); i >= 0 && over+i+1 < len(j.tail) {
			over += i + 1
		}
		j.tail = append(j.tail[:0], j.tail[over:]...)
	}
	ok, dropped := j.quota.take(time.Now(), len(line))
	j.mu.Unlock()
	if dropped > 0 {
		j.log.Warn("plugin log lines dropped", "lines", dropped)
	}
	if ok {
		j.log.LogAttrs(context.Background(), level, message, attrs...)
	}
}

// writer returns a writer that cuts a stream into lines. It belongs to one goroutine.
func (j *journal) writer() *lineWriter { return &lineWriter{j: j} }

type lineWriter struct {
	j   *journal
	buf []byte
}

// Write never fails: a plugin must not notice what becomes of its log.
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

// flush takes in what stands there without a line feed.
func (w *lineWriter) flush() {
	if len(w.buf) > 0 {
		w.j.line(w.buf)
		w.buf = w.buf[:0]
	}
}

// parseLine takes a line in hclog's JSON format apart (@level, @message, @timestamp and fields); any other line is
// a message of level info. It is the host's own parser because go-plugin's panics on "@message": 5.
func parseLine(text string) (slog.Level, string, []slog.Attr) {
	var fields map[string]any
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &fields) != nil {
		return slog.LevelInfo, text, nil
	}
	message, hasMessage := fields["@message"].(string)
	name, hasLevel := fields["@level"].(string)
	level, known := map[string]slog.Level{
		"trace": trace, "debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
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
