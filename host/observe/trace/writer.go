package trace

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Writer writes a file of events. It is safe for concurrent use. Its owner closes it. Events after that, after the
// first error, or beyond MaxBytes are dropped, so callers need not care. Nil drops everything.
type Writer struct {
	path  string
	start time.Time // time 0 of the file

	mu     sync.Mutex  // guards the rest
	file   *files.File // nil when closed
	line   []byte      // the event that is being written
	buf    []byte      // whole events
	size   int         // bytes, including those in buf
	full   bool
	err    error    // of the first write that failed
	groups []string // pid i+1
	tracks int
}

// MaxBytes bounds the size of a file, to what a viewer in a browser can handle.
const MaxBytes = 64 << 20

// piece is the number of bytes that are written at a time, if Flush is not called before. An event has about 150 bytes.
const piece = 64 << 10

// ending follows the last event.
const ending = "\n]\n"

// Check returns an error if Create would fail because the file cannot be written. It changes nothing.
func Check(path string) error {
	if err := disk.CheckFile(path); err != nil {
		return hint.Errorf("name a file that can be written", "--trace %s: %w", path, err)
	}
	return nil
}

// Create creates or truncates the file. It returns nil for "". Time 0 is the time of this call, or of NewTimeline.
func Create(path string) (*Writer, error) {
	if path == "" {
		return nil, nil
	}
	if err := Check(path); err != nil {
		return nil, err
	}
	f, err := files.At(path).Fresh()
	if err != nil {
		return nil, fmt.Errorf("--trace: %w", err)
	}
	return &Writer{path: path, file: f, start: time.Now()}, nil
}

// Track is a row of the picture.
type Track struct{ pid, tid int }

// Arg is a number that a viewer shows with an event. Its key must need no quoting in JSON.
type Arg struct {
	Key   string
	Value int
}

// Track creates a track in a group. A viewer shows groups in the order of their creation, and the tracks of a group in
// the order of their places.
func (w *Writer) Track(group, name string, place int) Track {
	if w == nil {
		return Track{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tracks++
	t := Track{w.group(group), w.tracks}
	w.meta(t, "thread", name, place)
	return t
}

// group returns a group's pid. The caller holds mu.
func (w *Writer) group(name string) int {
	if i := slices.Index(w.groups, name); i >= 0 {
		return i + 1
	}
	w.groups = append(w.groups, name)
	pid := len(w.groups)
	w.meta(Track{pid: pid}, "process", name, pid)
	return pid
}

// meta names a track (a thread in the format) or a group (a process). The caller holds mu.
func (w *Writer) meta(t Track, kind, name string, place int) {
	w.begin('M', t, kind+"_name")
	w.line = append(append(append(w.line, `,"args":{"name":`...), quote(name)...), '}')
	w.end()
	w.begin('M', t, kind+"_sort_index")
	w.args([]Arg{{"sort_index", place}})
	w.end()
}

// Span writes the work on a track from began to ended. The spans of a track must not overlap.
func (w *Writer) Span(t Track, name string, began, ended time.Time, args []Arg) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin('X', t, name)
	w.micros("ts", began.Sub(w.start))
	w.micros("dur", ended.Sub(began))
	w.args(args)
	w.end()
}

// Count writes the values of the counters of a group from a time on.
func (w *Writer) Count(group, name string, at time.Time, values []Arg) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin('C', Track{pid: w.group(group)}, name)
	w.micros("ts", at.Sub(w.start))
	w.args(values)
	w.end()
}

// begin begins an event in line. The caller holds mu, also for the following methods.
func (w *Writer) begin(phase byte, t Track, name string) {
	between := ",\n"
	if w.size == 0 {
		between = "[\n"
	}
	w.line = append(append(w.line[:0], between...), `{"ph":"`...)
	w.line = append(append(w.line, phase), `","pid":`...)
	w.line = strconv.AppendInt(w.line, int64(t.pid), 10)
	w.line = strconv.AppendInt(append(w.line, `,"tid":`...), int64(t.tid), 10)
	w.line = append(append(w.line, `,"name":`...), quote(name)...)
}

func quote(text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil {
		panic(err) // an empty text would be invalid JSON
	}
	return quoted
}

// micros writes a time in microseconds, to the nanosecond.
func (w *Writer) micros(key string, d time.Duration) {
	w.line = append(append(append(w.line, `,"`...), key...), `":`...)
	w.line = strconv.AppendFloat(w.line, float64(d)/1e3, 'f', 3, 64)
}

func (w *Writer) args(args []Arg) {
	between := `,"args":{"`
	for _, a := range args {
		w.line = append(append(append(w.line, between...), a.Key...), `":`...)
		w.line = strconv.AppendInt(w.line, int64(a.Value), 10)
		between = `,"`
	}
	if len(args) > 0 {
		w.line = append(w.line, '}')
	}
}

// end ends an event, and keeps it if there is room.
func (w *Writer) end() {
	w.line = append(w.line, '}')
	if w.full = w.full || w.size+len(w.line)+len(ending) > MaxBytes; w.full || w.file == nil || w.err != nil {
		return
	}
	w.buf = append(w.buf, w.line...)
	if w.size += len(w.line); len(w.buf) >= piece {
		w.flush()
	}
}

// flush writes what is buffered. The caller holds mu.
func (w *Writer) flush() {
	if w.err != nil || len(w.buf) == 0 {
		return
	}
	if _, err := w.file.Write(w.buf); err != nil {
		w.err = disk.Explain(err, w.path, int64(len(w.buf)))
	}
	w.buf = w.buf[:0]
}

// Flush writes all complete events, so that they outlive the process.
func (w *Writer) Flush() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		w.flush()
	}
}

// Close ends the file. It returns the first error of all writes, also if it is called again.
func (w *Writer) Close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return w.err
	}
	if w.size == 0 {
		w.buf = append(w.buf, '[')
	}
	w.buf = append(w.buf, ending...)
	w.flush()
	if err := w.file.Close(); w.err == nil {
		w.err = err
	}
	w.file = nil
	if w.err != nil {
		w.err = fmt.Errorf("timeline: %w", w.err)
	}
	return w.err
}
