package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
)

const (
	// MaxLine limits a line, in bytes. Those of a step have some 300, those of a text a few thousand. A longer one is
	// left out.
	MaxLine = 256 << 10
	// maxSkipped is the length up to which such a line is read to its end: a file with holes may pretend to any length.
	maxSkipped = 64 << 20
)

var (
	// ErrTooLong says that a line was left out because of its length.
	ErrTooLong = fmt.Errorf("it has more than %d KiB", MaxLine>>10)
	errEndless = fmt.Errorf("has more than %s, and nothing after it was read", units.Size(maxSkipped))
)

// Lines calls take for each complete line of a file. A line that take refuses or that is too long is left out, and the
// lines after it are read. problem says what was left out and what could not be read; it is "" for a file that is not
// there.
func Lines(path files.Path, take func(line []byte) error) (problem string) {
	f, err := path.Open()
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return Why(path, err)
	}
	defer f.Close()
	return linesOf(f, path, take)
}

// linesOf reads the lines of an open file.
func linesOf(f io.Reader, path files.Path, take func(line []byte) error) (problem string) {
	r, out := bufio.NewReaderSize(f, MaxLine), LeftOut{}
	for n := 1; ; n++ {
		line, err := next(r)
		switch err {
		case nil:
			out.Add(n, take(line))
		case ErrTooLong:
			out.Add(n, err)
		case io.EOF:
			return out.Text(path)
		case errEndless:
			return out.with(path, fmt.Sprintf("%s:%d %v", path.Base(), n, err))
		default:
			return out.with(path, Why(path, err))
		}
	}
}

// next returns a line, which the next call overwrites. The error is ErrTooLong for one that was passed over, errEndless
// for one that is too long for that, and io.EOF after the last complete one: a run that was killed may leave a part of
// a line.
func next(r *bufio.Reader) ([]byte, error) {
	line, err := r.ReadSlice('\n')
	if err != bufio.ErrBufferFull {
		return line, err
	}
	for skipped := len(line); skipped < maxSkipped; {
		piece, err := r.ReadSlice('\n')
		switch err {
		case bufio.ErrBufferFull:
			skipped += len(piece)
		case nil, io.EOF:
			return nil, ErrTooLong
		default:
			return nil, err
		}
	}
	return nil, errEndless
}

// LeftOut are lines of a file that were left out. The zero value is none.
type LeftOut struct {
	count, line int   // line is the first one
	first       error // what is wrong with it
}

// Add counts a line, unless err is nil.
func (l *LeftOut) Add(line int, err error) {
	if err == nil {
		return
	}
	if l.count++; l.first == nil {
		l.line, l.first = line, err
	}
}

// Text names the first line, and counts the others; "" without one.
func (l *LeftOut) Text(path files.Path) string {
	switch l.count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("%s:%d was left out: %v", path.Base(), l.line, l.first)
	}
	return fmt.Sprintf("%s:%d and %s were left out: %v", path.Base(), l.line,
		units.Count(l.count-1, "more line"), l.first)
}

// with is what was left out, followed by why the lines after it were not read.
func (l *LeftOut) with(path files.Path, why string) string {
	if text := l.Text(path); text != "" {
		return text + "; " + why
	}
	return why
}

// Why is why a file of the folder cannot be read, without the folder's path.
func Why(path files.Path, err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	} else if link, ok := errors.AsType[*files.LinkError](err); ok {
		err = link.Err
	}
	return fmt.Sprintf("%s: %v", path.Base(), err)
}
