package report

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"strconv"

	"github.com/xtts-host/xtts-host/host/base/disk"
	"github.com/xtts-host/xtts-host/host/base/files"
)

// lines is a file of JSON objects, one per line. Lines are appended with one write, so a reader sees only complete
// lines, except perhaps the last, also in the file of a killed run.
type lines struct {
	path  string
	wait  *files.Patience
	file  *files.File
	limit int   // bytes of a line, including its end
	end   int64 // after the last complete line
	torn  bool  // a part of a line may follow

	durable  int64  // bytes that are known to be on the disk
	unsynced []byte // the lines after them
	suspect  bool   // a sync has failed: what the disk has of these lines is not known
	buf      []byte
}

// maxLine limits a line, in bytes. The line of a step has about 300.
const maxLine = 64 << 10

// openLines opens or creates a file of lines of at most limit bytes. It cuts the file off before the first line for
// which keep returns false, or that has no end. Lines wait for the disk as long as wait says. An error of keep is
// returned with the line's number.
func openLines(path string, limit int, wait *files.Patience, keep func(line []byte) (bool, error)) (*lines, error) {
	l := &lines{path: path, limit: limit, wait: wait}
	return l, l.open(func() error { return l.cut(keep) })
}

// open opens the file, and closes it if cut, which leaves the lines that stay, fails.
func (l *lines) open(cut func() error) error {
	f, err := files.At(l.path).Append()
	if errors.Is(err, files.ErrLink) || files.OfMachine(err) {
		return err
	}
	if err != nil {
		return &damaged{err}
	}
	l.file = f
	if err := cut(); err != nil {
		return errors.Join(err, l.file.Close())
	}
	return nil
}

func (l *lines) cut(keep func(line []byte) (bool, error)) error {
	r := bufio.NewReader(l.file)
	for n := 1; ; n++ {
		line, err := l.next(r)
		if err == io.EOF {
			break
		}
		if err == bufio.ErrTooLong {
			return &damaged{fmt.Errorf("%s: line %d: more than %d bytes", l.path, n, l.limit)}
		}
		if err != nil {
			return err
		}
		ok, err := keep(line)
		if err != nil {
			return &damaged{fmt.Errorf("%s: line %d: %w", l.path, n, err)}
		}
		if !ok {
			break
		}
		l.end += int64(len(line))
	}
	l.durable = l.end // or a resumed run would have found less
	return l.file.Truncate(l.end)
}

// next reads a line into l.buf. The error is io.EOF also before a line without an end, and bufio.ErrTooLong for one
// that is longer than the limit, of which it returns what it has read last: that may not be its end.
func (l *lines) next(r *bufio.Reader) ([]byte, error) {
	for l.buf = l.buf[:0]; ; {
		piece, err := r.ReadSlice('\n')
		if len(l.buf)+len(piece) > l.limit {
			return piece, bufio.ErrTooLong
		}
		if l.buf = append(l.buf, piece...); err != bufio.ErrBufferFull {
			return l.buf, err
		}
	}
}

// write appends l.buf, and refuses a line that could not be read again.
func (l *lines) write() error {
	if err := l.fits(l.buf); err != nil {
		return err
	}
	return l.append(l.buf)
}

// fits returns an error for a line above the limit.
func (l *lines) fits(line []byte) error {
	if len(line) > l.limit {
		return fmt.Errorf("%s: a line of %d bytes, above the limit of %d", l.path, len(line), l.limit)
	}
	return nil
}

// append appends complete lines, and waits for a disk that is full or fails. After a failure, the file ends after the
// last complete line.
func (l *lines) append(text []byte) error {
	err := l.wait.Retry(func() error {
		n, err := l.appendNow(text)
		l.unsynced = append(l.unsynced, text[:n]...)
		text = text[n:]
		return err
	})
	if err == nil && len(l.unsynced) > maxUnsynced {
		err = l.sync()
	}
	return err
}

// maxUnsynced bounds what is kept of lines that are not durable, in bytes.
const maxUnsynced = 1 << 20

// appendNow returns how many bytes of text, up to the end of a line, the file has got.
func (l *lines) appendNow(text []byte) (int, error) {
	if links, err := l.file.Links(); err == nil && links == 0 { // sync finds the rest
		return 0, fmt.Errorf("%s: %w", l.path, ErrRemoved)
	}
	if l.torn {
		if err := l.file.Truncate(l.end); err != nil {
			return 0, err
		}
		l.torn = false
	}
	n, err := l.file.Write(text) // at the end
	if err == nil {
		l.end += int64(n)
		return n, nil
	}
	whole := bytes.LastIndexByte(text[:n], '\n') + 1
	l.end += int64(whole)
	// while the incomplete line still uses the space that was free
	err = disk.Explain(err, l.path, int64(len(text)-whole))
	if n > whole {
		// if no later one succeeds, the incomplete line is dropped when the file is opened again
		l.torn = l.file.Truncate(l.end) != nil
	}
	return whole, err
}

// ErrRemoved says that a file of the run folder is not there any more: it, or the folder, was removed or moved.
var ErrRemoved = errors.New("removed or moved away while the run was writing to it")

// there returns an ErrRemoved unless the open file is still the one at its path.
func (l *lines) there() error {
	err := l.file.Here(files.At(l.path))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", l.path, ErrRemoved)
	}
	return err
}

// sync makes the lines durable. It waits for a disk that fails.
func (l *lines) sync() error {
	return l.wait.Retry(func() error {
		if err := l.there(); err != nil {
			return err
		}
		if err := l.syncNow(); err != nil {
			return disk.Explain(fmt.Errorf("sync %s: %w", l.path, err), l.path, int64(len(l.unsynced)))
		}
		l.durable, l.unsynced, l.suspect = l.end, l.unsynced[:0], false
		return nil
	})
}

// syncNow writes the lines that are not known to be durable again, to another file, once a sync has failed: the kernel
// may have dropped them, and a second sync of the same file would succeed.
func (l *lines) syncNow() error {
	if !l.suspect {
		err := l.file.Sync()
		l.suspect = err != nil
		return err
	}
	anew, err := l.file.Rewrite(files.At(l.path), l.durable, l.unsynced)
	if err != nil {
		return err
	}
	_ = l.file.Close() // what it says is known
	l.file = anew
	return nil
}

func (l *lines) close() error {
	if err := l.file.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

// damaged is the error of a file, or of a line that is not the last, that this package did not write.
type damaged struct{ error }

func (e *damaged) Unwrap() error { return e.error }
func (e *damaged) Hint() string {
	return "repair the file, or move it away: the run then starts a new file"
}

// appendFloat writes the shortest text that reads back as v, and null for NaN and infinities.
func appendFloat(b []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return append(b, "null"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}
