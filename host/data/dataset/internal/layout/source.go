package layout

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Source is a list.
type Source struct {
	Dir, List string
	Flag      string // that says the layout of the list, for messages
	// MaxLine is the longest line in bytes. A list is looked at up to a longer one, which its reader refuses.
	MaxLine int
	// Find returns the file of a recording, which may have another ending, and whether there is one.
	Find func(audio string) (file string, ok bool)
	// Seconds returns the length of a recording.
	Seconds func(file string) (float64, error)
	// Clean normalizes a text.
	Clean func(string) string
}

func (s *Source) open() (*files.File, error) {
	return files.Open(filepath.Join(s.Dir, s.List))
}

// scan calls line for each line of the list that is valid UTF-8 and not empty; the bytes are valid until it returns. It
// ends early when line returns false, and at a line that is too long.
func (s *Source) scan(split bufio.SplitFunc, line func(number int, text []byte) bool) error {
	f, err := s.open()
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, s.MaxLine)
	lines.Split(split)
	next := 1
	for lines.Scan() {
		data, number := lines.Bytes(), next
		next += LinesOf(data)
		if number == 1 {
			data = bytes.TrimPrefix(data, []byte("\ufeff"))
		}
		data = bytes.TrimRight(data, "\r\n")
		if len(bytes.TrimSpace(data)) == 0 || !utf8.Valid(data) {
			continue
		}
		if !line(number, data) {
			return nil
		}
	}
	if err := lines.Err(); !errors.Is(err, bufio.ErrTooLong) {
		return err
	}
	return nil
}

// LinesOf returns how many lines of the file a line of a list has: more than one if a quoted field has line ends. The
// data may have lost its own.
func LinesOf(data []byte) int {
	if len(data) == 0 || bytes.IndexByte(data, '\n') < 0 {
		return 1
	}
	n := bytes.Count(data, []byte("\n"))
	if data[len(data)-1] != '\n' {
		n++
	}
	return n
}

// ends are the line ends of a list.
type ends struct{ feeds, returns int } // \n, and \r without \n after it

// countEnds counts up to a line that is too long, where the list ends.
func (s *Source) countEnds() (e ends, err error) {
	f, err := s.open()
	if err != nil {
		return e, err
	}
	defer f.Close()
	buffer := make([]byte, 64<<10)
	pending := 0 // the last byte was \r
	for long := 0; err == nil && long <= s.MaxLine; {
		var n int
		n, err = f.Read(buffer)
		data := buffer[:n]
		if long += n; bytes.ContainsAny(data, "\r\n") {
			long = 0
		}
		if n > 0 && data[0] == '\n' {
			pending = 0
		}
		e.feeds += bytes.Count(data, []byte("\n"))
		if crs := bytes.Count(data, []byte("\r")); crs > 0 || pending > 0 {
			e.returns += pending + crs - bytes.Count(data, []byte("\r\n"))
			pending = 0
			if n > 0 && data[n-1] == '\r' {
				e.returns, pending = e.returns-1, 1
			}
		}
	}
	e.returns += pending
	if err == io.EOF {
		err = nil
	}
	return e, err
}

// lineEnds says whether a carriage return alone ends a line: it does if there is no line feed, or if what follows each
// one within a line begins as a line does. Otherwise it is white space. Both in one list is refused, except as version
// 75a547d6 read lists: it is white space then.
func (s *Source) lineEnds(asBefore bool, begins func(string) bool) (cr bool, e ends, err error) {
	if e, err = s.countEnds(); err != nil || e.returns == 0 {
		return false, e, err
	}
	if e.feeds == 0 {
		return true, ends{e.returns, 0}, nil
	}
	yes, no := 0, 0 // first lines
	err = s.scan(bufio.ScanLines, func(number int, line []byte) bool {
		_, rest, _ := strings.Cut(string(line), "\r")
		for piece := range strings.SplitSeq(rest, "\r") {
			switch {
			case strings.TrimSpace(piece) == "":
			case begins(piece) && yes == 0:
				yes = number
			case !begins(piece) && no == 0:
				no = number
			}
		}
		return yes == 0 || no == 0
	})
	if err == nil && yes > 0 && no > 0 {
		if asBefore {
			return false, e, nil
		}
		err = hint.Errorf(fmt.Sprintf("replace each carriage return that ends a line by a line feed, as in line %d, "+
			"and each one within a text by a space, "+
			"as in line %d", yes, no),
			"%s: carriage returns end lines (in line %d) and are within texts (in line %d), counted by line feeds",
			s.List, yes, no)
	}
	return yes > 0, e, err
}

// bases are the folders in which recordings are looked for, in this order.
var bases = []string{"wavs/", "", "wav/", "clips/", "audio/", "audios/", "../"}

// place finds the folder of the recordings of some lines, which has most of them, and how many it has. Without any it
// is the first.
func (s *Source) place(keys []string, paths bool) (base string, found int) {
	base = bases[0]
	if paths {
		base = ""
	}
	if paths && len(keys) > 0 && path.IsAbs(keys[0]) {
		for _, key := range keys {
			if _, ok := s.Find(key); ok {
				found++
			}
		}
		return "", found
	}
	for _, b := range bases {
		l, n := Layout{Columns: []Role{Path}, Base: b}, 0
		if !paths {
			l.Columns[0] = ID
		}
		for i, key := range keys {
			if _, ok := s.Find(l.Audio(key)); ok && keyOK(key) {
				n++
			}
			if i == 7 && n == 0 { // probably not here
				break
			}
		}
		if n > found {
			base, found = b, n
		}
		if n == len(keys) {
			break
		}
	}
	return base, found
}

func keyOK(key string) bool {
	return key != "" && !strings.ContainsRune(key, 0) && path.Clean(key) != "."
}
