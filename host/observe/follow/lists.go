package follow

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

const (
	maxClips = 5000
	maxLines = 400
	maxPath  = 4096
)

// Clip is a line of quarantine.jsonl.
type Clip struct {
	ID, Path, Reason, Stage, Split string
}

type clips struct {
	list  []Clip
	count int
}

func (c *clips) take(line []byte) error {
	var v Clip
	if err := json.Unmarshal(line, &v); err != nil {
		return err
	}
	if c.count++; len(c.list) == maxClips {
		return nil
	}
	v.ID, v.Reason = visible.Short(v.ID, maxText), visible.Short(v.Reason, maxText)
	v.Stage, v.Split = visible.Short(v.Stage, maxName), visible.Short(v.Split, maxName)
	if len(v.Path) > maxPath {
		v.Path = ""
	}
	c.list = append(c.list, v)
	return nil
}

// Clips returns so many of the clips that cannot be used, from one on, and how many there are.
func (r *Run) Clips(from, most int) (list []Clip, count int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.clips.list
	from = min(max(0, from), len(all))
	return slices.Clone(all[from:min(len(all), from+most)]), r.clips.count
}

// Line is one of log.jsonl. Text is the message with its details.
type Line struct {
	Time, Level, Text string
}

type log struct {
	lines    []Line // the last ones
	warnings int    // and errors
}

func (l *log) take(line []byte) error {
	v, err := ParseLine(line)
	if err != nil {
		return err
	}
	if v.Level == "WARN" || v.Level == "ERROR" {
		l.warnings++
	}
	if l.lines = append(l.lines, v); len(l.lines) > 2*maxLines {
		l.lines = append([]Line(nil), l.lines[maxLines:]...)
	}
	return nil
}

// ParseLine reads a line of log.jsonl.
func ParseLine(line []byte) (v Line, err error) {
	var all map[string]any
	if err := json.Unmarshal(line, &all); err != nil {
		return v, err
	}
	take := func(key string) string {
		s, _ := all[key].(string)
		delete(all, key)
		return s
	}
	v.Time, v.Level = visible.Short(take("time"), maxName), visible.Short(take("level"), maxName)
	parts := []string{take("msg")}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		parts = append(parts, fmt.Sprintf("%s=%v", key, all[key]))
	}
	v.Text = visible.Short(strings.Join(parts, " "), maxText)
	return v, nil
}

// Log returns the last lines of the log, at most so many, and the number of warnings and errors in all of it.
func (r *Run) Log(most int) (lines []Line, warnings int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := r.log.lines
	return slices.Clone(all[max(0, len(all)-most):]), r.log.warnings
}

// End returns the last lines of a log, at most so many and of its last 32 KiB, and when it was written.
func End(path files.Path, most int) (lines []Line, at time.Time) {
	f, err := path.Open()
	if err != nil {
		return nil, at
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		at = info.ModTime()
	}
	data := make([]byte, min(f.Size(), 32<<10))
	if files.ReadAt(f, data, f.Size()-int64(len(data))) != nil {
		return nil, at
	}
	for line := range bytes.Lines(data) {
		if v, err := ParseLine(line); err == nil {
			lines = append(lines, v)
		}
	}
	return lines[max(0, len(lines)-most):], at
}
