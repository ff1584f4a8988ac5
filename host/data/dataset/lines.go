package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/xtts-host/xtts-host/host/data/dataset/internal/layout"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/plain"
)

// Limits of a list.
const (
	maxLine    = 1 << 20 // bytes: a longer line is not read to its end
	blockLines = 256
	maxSpare   = 4 << 20 // bytes of a block that is kept for reuse
)

// block is some lines of a list that follow one another.
type block struct {
	numbers []int  // of the lines, from 1
	ends    []int  // of the lines in text
	text    []byte // without line ends
	rows    []scannedRow
	fields  []byte        // of the rows
	done    chan struct{} // closed when rows are complete
}

// spare are blocks for reuse: their memory would be most of the garbage of a long list.
var spare = sync.Pool{New: func() any {
	return &block{numbers: make([]int, 0, blockLines), ends: make([]int, 0, blockLines)}
}}

func newBlock() *block {
	b := spare.Get().(*block)
	b.done = make(chan struct{})
	return b
}

// release gives a block back. Only the strings of its rows stay valid.
func (b *block) release() {
	if cap(b.text)+cap(b.fields) > maxSpare {
		return
	}
	clear(b.rows)
	*b = block{numbers: b.numbers[:0], ends: b.ends[:0], text: b.text[:0], rows: b.rows[:0], fields: b.fields[:0]}
	spare.Put(b)
}

func (b *block) line(i int) []byte {
	start := 0
	if i > 0 {
		start = b.ends[i-1]
	}
	return b.text[start:b.ends[i]:b.ends[i]]
}

// blocks reads a list, which split divides into lines. A byte order mark, CRLF line ends and empty lines are allowed,
// and a line may have line ends in a quoted field. skip is the number of a line that is no clip. It ends with the first
// error, which is one of reading, or a line that is too long. name is only used in messages.
func blocks(name string, r io.Reader, split bufio.SplitFunc, skip int) iter.Seq2[*block, error] {
	return func(yield func(*block, error) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, maxLine)
		lines.Split(split)
		b, n, next := newBlock(), 0, 1
		for lines.Scan() {
			data := lines.Bytes()
			n, next = next, next+layout.LinesOf(data)
			if n == 1 {
				data = plain.Trim(data)
			}
			if data = bytes.TrimRight(data, "\r\n"); len(bytes.TrimSpace(data)) == 0 || n == skip {
				continue
			}
			b.text = append(b.text, data...)
			b.numbers, b.ends = append(b.numbers, n), append(b.ends, len(b.text))
			if len(b.ends) == blockLines {
				full := b
				b = newBlock()
				if !yield(full, nil) { // the block is no longer ours
					return
				}
			}
		}
		err := lines.Err()
		switch {
		case errors.Is(err, bufio.ErrTooLong):
			err = hint.Errorf("write one line per clip", "%s:%d: the line is longer than %d KiB", name, next,
				maxLine>>10)
		case err != nil:
			err = fmt.Errorf("%s: %w", name, err)
		}
		yield(b, err)
	}
}

// notUTF8 is the reason of a line in another encoding. Index.Remedy says once how a list is converted.
const notUTF8 = "the line is not UTF-8"

// parseIn parses a line of a block. A line that is not UTF-8 becomes an entry with a reason.
func parseIn(b *block, i int, parse parser) (e entry, err error) {
	if line := b.line(i); utf8.Valid(line) {
		e, err = parse(line)
	} else {
		e.reason = notUTF8
	}
	e.line = b.numbers[i]
	return e, err
}

// ids refuses a list whose lines are ambiguous: an id occurs twice, or the parser refuses a line.
type ids struct {
	name  string // of the list
	place func(line int) string
	lines map[string]int
	most  int // errors that are listed
	errs  []error
	more  int // errors that are only counted
}

// add adds the id of the next entry, and the parser's error.
func (s *ids) add(e *entry, err error) {
	if e.id != "" {
		if first, ok := s.lines[e.id]; ok && err == nil {
			err = hint.Errorf("an id names one clip: remove one of the lines, or give it another id",
				"id %q is already in %s", e.id, s.first(first))
		}
		s.lines[e.id] = e.line
	}
	switch {
	case err == nil:
	case len(s.errs) == s.most:
		s.more++
	default:
		s.errs = append(s.errs, fmt.Errorf("%s: %w", s.place(e.line), err))
	}
}

// first names the line that has an id already. The texts of a folder without a list are in many files.
func (s *ids) first(line int) string {
	place := s.place(line)
	if number, ok := strings.CutPrefix(place, s.name+":"); ok {
		return "line " + number
	}
	return place
}

func (s *ids) err() error {
	errs := s.errs
	if s.more > 0 {
		errs = append(errs, fmt.Errorf("%s: and %d more such lines", s.name, s.more))
	}
	return errors.Join(errs...)
}
