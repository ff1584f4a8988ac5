package trace

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/disk"
)

// Writer writes a file of events. It is safe for concurrent use. Its owner closes it; what comes behind that, behind the first
// error, or beyond MaxBytes is dropped, so that nobody who is traced has to care. Nil drops everything.
type Writer struct {
	path  string
	start time.Time // time 0 of the file

	mu     sync.Mutex // guards the rest
	file   *os.File   // nil when closed
	buf    []byte     // whole events
	size   int        // bytes, those in buf included
	full   bool
	err    error    // of the first write that failed
	groups []string // pid i+1
	tracks int
}

// MaxBytes bounds a file. A viewer in a browser takes as much well.
const MaxBytes = 64 << 20

// piece is how many bytes are written at a time, if nobody calls Flush before. An event has some 150.
const piece = 64 << 10

// end is behind the last event.
const end = "\n]\n"

// Create makes the file, or empties it. It returns nil for "". Time 0 is now, or when a Timeline is made.
func Create(path string) (*Writer, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &Writer{path: path, file: f, start: time.Now()}, nil
}

// Track is a line of the picture.
type Track struct{ pid, tid int }

// Args are numbers that a viewer shows beside an event.
type Args map[string]int

// event is one as the format has it.
type event struct {
	Phase    string  `json:"ph"` // M: about a track, X: span, C: counters
	PID      int     `json:"pid"`
	TID      int     `json:"tid"`
	Time     micros  `json:"ts"`
	Duration *micros `json:"dur,omitempty"`
	Name     string  `json:"name"`
	Args     any     `json:"args,omitempty"`
}

// micros is a time in microseconds, to the nanosecond.
type micros time.Duration

// MarshalJSON implements json.Marshaler.
func (m micros) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(m)/1e3, 'f', 3, 64), nil
}

// Track makes a track of a group. A viewer shows groups in the order in which they are first named, the tracks of a group
// by their places.
func (w *Writer) Track(group, name string, place int) Track {
	if w == nil {
		return Track{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tracks++
	t := Track{w.group(group), w.tracks}
	w.write(event{Phase: "M", PID: t.pid, TID: t.tid, Name: "thread_name", Args: map[string]string{"name": name}})
	w.write(event{Phase: "M", PID: t.pid, TID: t.tid, Name: "thread_sort_index", Args: Args{"sort_index": place}})
	return t
}

// group returns a group's pid. The caller holds mu.
func (w *Writer) group(name string) int {
	if i := slices.Index(w.groups, name); i >= 0 {
		return i + 1
	}
	w.groups = append(w.groups, name)
	pid := len(w.groups)
	w.write(event{Phase: "M", PID: pid, Name: "process_name", Args: map[string]string{"name": name}})
	w.write(event{Phase: "M", PID: pid, Name: "process_sort_index", Args: Args{"sort_index": pid}})
	return pid
}

// Span writes what was done on a track from began to ended. The spans of a track must not overlap.
func (w *Writer) Span(t Track, name string, began, ended time.Time, args Args) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	took := micros(ended.Sub(began))
	w.write(event{Phase: "X", PID: t.pid, TID: t.tid, Time: micros(began.Sub(w.start)), Duration: &took, Name: name, Args: args})
}

// Count writes the values that counters of a group have from a moment on.
func (w *Writer) Count(group, name string, at time.Time, values Args) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(event{Phase: "C", PID: w.group(group), Time: micros(at.Sub(w.start)), Name: name, Args: values})
}

// write adds an event. The caller holds mu.
func (w *Writer) write(e event) {
	if w.file == nil || w.full || w.err != nil {
		return
	}
	text, err := json.Marshal(e)
	if err != nil {
		panic(err) // plain data
	}
	if w.full = w.size+len(text)+2+len(end) > MaxBytes; w.full {
		return
	}
	between := ",\n"
	if w.size == 0 {
		between = "[\n"
	}
	w.buf = append(append(w.buf, between...), text...)
	w.size += len(between) + len(text)
	if len(w.buf) >= piece {
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

// Flush writes all whole events, so that they outlive the process.
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

// Close ends the file. It returns the first error of all writes, also when it is called again.
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
	w.buf = append(w.buf, end...)
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
