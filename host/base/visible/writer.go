package visible

import (
	"bytes"
	"fmt"
	"io"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// writer shows text of several lines. Any goroutine may write.
type writer struct {
	to io.Writer

	mu     sync.Mutex // guards the rest
	before rune       // the last character
	rest   []byte     // the beginning of a character
}

// NewWriter returns a writer whose output is Block of what is written to it.
func NewWriter(to io.Writer) io.Writer { return &writer{to: to} }

func (w *writer) Write(text []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := append(w.rest, text...)
	end := len(all)
	for i := 1; i < utf8.UTFMax && i <= len(all); i++ {
		if last := all[len(all)-i:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				end -= i
			}
			break
		}
	}
	w.rest = bytes.Clone(all[end:])
	var shown string
	shown, w.before = show(w.before, string(all[:end]), true)
	if _, err := io.WriteString(w.to, shown); err != nil {
		return 0, err
	}
	return len(text), nil
}

// Raw returns what a writer of NewWriter writes to, for who moves the cursor of a terminal, or w itself.
func Raw(w io.Writer) io.Writer {
	if w, ok := w.(*writer); ok {
		return w.to
	}
	return w
}

// Fprintf is fmt.Fprintf of printable arguments: the format and its line breaks are the program's own.
func Fprintf(w io.Writer, format string, args ...any) (int, error) {
	return fmt.Fprintf(w, format, printable(args)...)
}

// printable returns arguments of a format that print what the given ones print, as Text. Plain numbers, which may be
// the width of others, stay as they are.
func printable(args []any) []any {
	shown := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case nil, bool, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64, uintptr, float32, float64:
			shown[i] = a
		default:
			shown[i] = argument{a}
		}
	}
	return shown
}

// argument prints Text of what a value prints. So the value chooses by the verb: a time.Duration is a number for %d.
type argument struct{ value any }

func (a argument) Format(f fmt.State, verb rune) {
	format := fmt.FormatString(f, verb)
	if s, ok := a.value.(string); ok && verb != 'q' { // the width is that of what is shown; %q has escapes of its own
		fmt.Fprintf(f, format, Text(s))
		return
	}
	io.WriteString(f, Text(fmt.Sprintf(format, a.value)))
}

// JSON returns a text of JSON with escapes for the characters that Text does not show: the same values, in a form that
// can be shown on a terminal.
func JSON(text []byte) []byte {
	if !bytes.ContainsFunc(text, func(r rune) bool { return r >= 0x7f && hidden('a', r) }) {
		return text
	}
	var out bytes.Buffer
	before := rune(0)
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r < 0x7f || !hidden(before, r):
			out.Write(text[:size])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		before, text = r, text[size:]
	}
	return out.Bytes()
}
