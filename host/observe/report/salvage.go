package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/units"
)

// Aside follows the name of a file some of whose lines could not be read: it is kept under that name.
const Aside = ".damaged"

// salvageLines is openLines for lines that a run can do without, up to a step. take gets each of these, and may refuse
// it. Those that cannot be read are dropped, and the file as it was is put aside; problem then says so.
func salvageLines[L any](
	path string, limit int, step int64, take func(L) error,
) (l *lines, problem string, err error) {
	l = &lines{path: path, limit: limit}
	stays := upTo(step)
	err = l.open(func() (err error) {
		problem, err = l.salvage(func(line []byte) (bool, error) {
			var v L
			ok, err := stays(line)
			if ok {
				err = json.Unmarshal(line, &v)
			}
			if ok && err == nil {
				err = take(v)
			}
			return ok && err == nil, err
		})
		return err
	})
	return l, problem, err
}

func (l *lines) salvage(keep func(line []byte) (bool, error)) (problem string, err error) {
	r := bufio.NewReader(l.file)
	var first error // of a line that cannot be read
	var rest []byte // the lines that stay after it
	dropped := 0
	for n := 1; ; n++ {
		line, err := l.next(r)
		if err == io.EOF {
			break
		}
		ok := true
		if err == nil {
			ok, err = keep(line)
		} else if err == bufio.ErrTooLong {
			if err = skipLine(r, line); err == nil {
				err = fmt.Errorf("more than %d bytes", l.limit)
			}
		} else {
			return "", err
		}
		if err != nil {
			if dropped++; first == nil {
				first = fmt.Errorf("line %d: %w", n, err)
			}
			continue
		}
		if !ok {
			break
		}
		if first == nil {
			l.end += int64(len(line))
		} else {
			rest = append(rest, line...)
		}
	}
	if first == nil {
		l.durable = l.end // or a resumed run would have found less
		return "", l.file.Truncate(l.end)
	}
	return fmt.Sprintf("%s: %s cannot be read and left out; the file as it was is %s%s: %v", files.At(l.path).Base(),
		units.Count(dropped, "line"), files.At(l.path).Base(), Aside, first), l.putAside(rest)
}

// putAside gives the file another name, and its lines up to the end, with those of rest, its own.
func (l *lines) putAside(rest []byte) error {
	at := files.At(l.path)
	if err := at.Rename(at.Parent().Join(at.Base() + Aside)); err != nil {
		return err
	}
	anew, err := l.file.Rewrite(at, l.end, rest)
	if err != nil {
		return err
	}
	_ = l.file.Close() // it was only read
	l.file, l.end = anew, l.end+int64(len(rest))
	l.durable = l.end
	return nil
}

// skipLine reads to the end of a line of which a piece has been read last. The last line of a file may have no end.
func skipLine(r *bufio.Reader, piece []byte) (err error) {
	for err = bufio.ErrBufferFull; err == bufio.ErrBufferFull && !bytes.HasSuffix(piece, []byte("\n")); {
		piece, err = r.ReadSlice('\n')
	}
	if err == bufio.ErrBufferFull || err == io.EOF {
		return nil
	}
	return err
}
