package array

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"strconv"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Limits of a .npy header. NumPy itself reads no more than 10,000 bytes unless it is asked to.
const (
	maxHeader = 64 << 10
	maxRank   = 32
)

const magic = "\x93NUMPY"

var errCut = errors.New("the file ends within the header")

// npy reads the header of a file of the .npy format, versions 1 to 3
// (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
func npy(src io.ReaderAt, size int64) (*File, error) {
	head := make([]byte, min(12, size))
	if _, err := src.ReadAt(head, 0); err != nil && err != io.EOF {
		return nil, err
	}
	if !strings.HasPrefix(string(head), magic) {
		return nil, hint.Errorf("write it with numpy.save", "not a .npy file")
	}
	start, length := int64(10), int64(0)
	switch {
	case len(head) < 12:
		return nil, errCut
	case head[6] == 1:
		length = int64(binary.LittleEndian.Uint16(head[8:]))
	case head[6] == 2 || head[6] == 3:
		start, length = 12, int64(binary.LittleEndian.Uint32(head[8:]))
	default:
		return nil, fmt.Errorf("version %d of the .npy format, which has versions 1 to 3", head[6])
	}
	switch {
	case length > maxHeader:
		return nil, fmt.Errorf("a header of %d bytes, more than %d", length, maxHeader)
	case start+length > size:
		return nil, errCut
	}
	text := make([]byte, length)
	if _, err := src.ReadAt(text, start); err != nil && err != io.EOF {
		return nil, err
	}
	d, err := parseHeader(string(text))
	if err != nil {
		return nil, err
	}
	start += length
	if want, ok := bytesOf(d.shape, d.kind.size); !ok || want != size-start {
		return nil, fmt.Errorf("the header says %s of shape %v, which does not fill the %d bytes of data", d.kind.name,
			d.shape, size-start)
	}
	return &File{Shape: d.shape, kind: d.kind, data: io.NewSectionReader(src, start, size-start)}, nil
}

// bytesOf returns the size of an array, or false if it is beyond all files.
func bytesOf(shape []int, element int) (int64, bool) {
	n := uint64(element)
	for _, d := range shape {
		hi, lo := bits.Mul64(n, uint64(d))
		if hi != 0 || lo > 1<<62 {
			return 0, false
		}
		n = lo
	}
	return int64(n), true
}

// header is the dictionary of a .npy file.
type header struct {
	kind  kind
	shape []int
}

// parseHeader reads the dictionary, a literal of Python: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
func parseHeader(text string) (h header, err error) {
	l := literal{rest: text}
	seen := map[string]bool{}
	var descr, fortran string
	l.expect("{")
	for l.err == nil && !l.accept("}") {
		key := l.text()
		l.expect(":")
		if seen[key] {
			return h, fmt.Errorf("the header has %.40q twice", key)
		}
		seen[key] = true
		switch key {
		case "descr":
			if l.peek() == '[' {
				return h, hint.Errorf("save one array for each field", "the array has a structured type")
			}
			descr = l.text()
		case "fortran_order":
			fortran = l.word()
		case "shape":
			h.shape = l.tuple()
		default:
			l.fail()
		}
		if !l.accept(",") && l.peek() != '}' {
			l.fail()
		}
	}
	switch {
	case l.err != nil || strings.TrimSpace(l.rest) != "":
		return h, errors.New("the header is not that of a .npy file")
	case len(seen) != 3:
		return h, errors.New("the header lacks one of descr, fortran_order and shape")
	case fortran == "True" && len(h.shape) > 1:
		const advice = "save it with numpy.save(file, numpy.ascontiguousarray(a))"
		return h, hint.Errorf(advice, "the array is in Fortran order")
	case fortran != "True" && fortran != "False":
		return h, errors.New("fortran_order of the header is neither True nor False")
	}
	h.kind, err = kindOf(descr)
	return h, err
}

// kindOf returns the kind of a type in NumPy's notation.
func kindOf(descr string) (kind, error) {
	name := strings.TrimLeft(descr, "<|=")
	if k, ok := ofNumPy[name]; ok && (descr[0] == '<' || descr[0] == '|' && k.size == 1) {
		return k, nil
	}
	switch {
	case strings.HasPrefix(descr, ">"):
		return kind{}, hint.Errorf("save it with the type of this machine: a.astype(a.dtype.newbyteorder('='))",
			"the type is %.20q, big-endian", descr)
	case name == "O":
		return kind{}, hint.Errorf("save numbers, for example with a.astype(numpy.int32)",
			"the array has Python objects, which are not read")
	}
	return kind{}, fmt.Errorf("the type is %.20q, which is not one of numbers", descr)
}

// literal reads the tokens of a Python literal. After an error it reads nothing.
type literal struct {
	rest string
	err  error
}

func (l *literal) fail() { l.err, l.rest = errors.New("unexpected"), "" }

// peek returns the first byte of the next token, 0 at the end.
func (l *literal) peek() byte {
	if l.rest = strings.TrimLeft(l.rest, " \t\r\n"); l.rest == "" {
		return 0
	}
	return l.rest[0]
}

func (l *literal) accept(token string) bool {
	l.peek()
	rest, ok := strings.CutPrefix(l.rest, token)
	if ok {
		l.rest = rest
	}
	return ok
}

func (l *literal) expect(token string) {
	if !l.accept(token) {
		l.fail()
	}
}

// text reads a string without escapes.
func (l *literal) text() string {
	quote := l.peek()
	if quote != '\'' && quote != '"' {
		l.fail()
		return ""
	}
	text, rest, ok := strings.Cut(l.rest[1:], string(quote))
	if l.rest = rest; !ok {
		l.fail()
	}
	return text
}

func (l *literal) word() string {
	l.peek()
	n := strings.IndexFunc(l.rest,
		func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') })
	if n <= 0 {
		l.fail()
		return ""
	}
	word := l.rest[:n]
	l.rest = l.rest[n:]
	return word
}

// tuple reads a tuple of sizes.
func (l *literal) tuple() []int {
	shape := []int{}
	l.expect("(")
	for l.err == nil && !l.accept(")") {
		n, err := strconv.ParseInt(strings.TrimSuffix(l.word(), "L"), 10, 62) // Python 2 wrote 3L
		if shape = append(shape, int(n)); err != nil || len(shape) > maxRank {
			l.fail()
		}
		if !l.accept(",") && l.peek() != ')' {
			l.fail()
		}
	}
	return shape
}
