package follow

import (
	"bytes"
	"errors"
	"io"
	"io/fs"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/record"
)

const (
	// maxLine limits a line, in bytes; a longer one is left out.
	maxLine = record.MaxLine
	// known is how many bytes before the place of a tail are compared: where they differ, the file is another one.
	known = 128
)

// tail reads the lines of a file that grows.
type tail struct {
	path  files.Path
	end   int64  // how many bytes before the end of a file that is new it begins; 0 for the beginning of the file
	at    int64  // so many bytes are read
	last  []byte // the bytes before at, at most known
	begun []byte // of a line that is not complete
	skip  bool   // the line is too long, and is left out up to its end
	cut   bool   // the reading began in the middle of the line
	// problem is why the file could not be read the last time, "" if it could.
	problem string
	count   int            // of the lines that are read
	out     record.LeftOut // of them
}

// read passes the lines that were appended to take, and reads at most so many bytes for that. again is called first if
// the file is not the one that was read, or was cut. more says that there is more to read.
func (t *tail) read(most int64, again func(), take func(line []byte) error) (more bool) {
	f, err := t.path.Open()
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && t.at > 0 {
			t.restart(again)
		}
		t.problem = ""
		if !errors.Is(err, fs.ErrNotExist) {
			t.problem = record.Why(t.path, err)
		}
		return false
	}
	defer f.Close()
	t.problem = ""
	if f.Size() < t.at || !t.same(f) {
		t.restart(again)
	}
	if t.at == 0 && t.end > 0 && f.Size() > t.end {
		t.at, t.skip, t.cut = f.Size()-t.end, true, true
	}
	data := make([]byte, min(f.Size()-t.at, most))
	n, err := f.ReadAt(data, t.at)
	if err != nil && err != io.EOF {
		t.problem = record.Why(t.path, err)
		return false
	}
	data = data[:n]
	t.at += int64(n)
	t.last = append(t.last, data[max(0, n-known):]...)
	t.last = bytes.Clone(t.last[max(0, len(t.last)-known):])
	t.lines(data, take)
	return n > 0 && t.at < f.Size()
}

// problems say what of the file could not be read.
func (t *tail) problems() (list []string) {
	if t.problem != "" {
		list = append(list, t.problem)
	}
	if text := t.out.Text(t.path); text != "" && t.end == 0 { // otherwise the numbers of the lines are not known
		list = append(list, text)
	}
	return list
}

// same reports whether the bytes before the place are those that were read.
func (t *tail) same(f io.ReaderAt) bool {
	now := make([]byte, len(t.last))
	return files.ReadAt(f, now, t.at-int64(len(now))) == nil && bytes.Equal(now, t.last)
}

func (t *tail) restart(again func()) {
	*t = tail{path: t.path, end: t.end}
	again()
}

// lines passes whole lines on, and keeps what is left.
func (t *tail) lines(data []byte, take func(line []byte) error) {
	for {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole {
			break
		}
		t.count++
		switch {
		case t.skip && t.cut: // it has only the end of this line
			t.skip, t.cut, t.count = false, false, 0
		case t.skip, len(t.begun)+len(line) > maxLine:
			t.skip = false
			t.out.Add(t.count, record.ErrTooLong)
		case len(t.begun) > 0:
			t.out.Add(t.count, take(append(t.begun, line...)))
		default:
			t.out.Add(t.count, take(line))
		}
		t.begun, data = t.begun[:0], rest
	}
	if t.skip = t.skip || len(t.begun)+len(data) > maxLine; t.skip {
		t.begun = t.begun[:0]
		return
	}
	t.begun = append(t.begun, data...)
}
