// Package visible formats untrusted text, such as that of plugins, so that it can neither control a terminal nor
// imitate a message of the host.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns one line in which every control character, line separator, bidirectional control and byte that is not
// UTF-8 is written as an escape of Go: \x1b, \n, \u202e. A tab stays.
func Text(s string) string {
	if utf8.ValidString(s) && !strings.ContainsFunc(s, hidden) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n':
			b.WriteString(`\n`)
		case hidden(r) && r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case hidden(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		s = s[size:]
	}
	return b.String()
}

// Short returns Text, cut between two characters to at most limit bytes.
func Short(s string, limit int) string {
	const ellipsis = "…"
	s = Text(s)
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit-len(ellipsis)], "") + ellipsis
	}
	return s
}

// Clauses returns Text in at most limit bytes: if it is longer, only as many of its clauses, which semicolons end, as
// fit, so that a command in it is complete or left out.
func Clauses(s string, limit int) string {
	const end, rest = "; ", "; …"
	s = Text(s)
	if len(s) <= limit {
		return s
	}
	if at := strings.LastIndex(s[:limit-len(rest)+len(end)], end); at > 0 {
		return s[:at] + rest
	}
	return Short(s, limit)
}

func hidden(r rune) bool {
	return r != '\t' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}

// Lines returns Text of each line. All but the first are indented and begin with who wrote them.
func Lines(who, s string) string {
	lines := strings.Split(strings.TrimRight(s, "\r\n"), "\n")
	for i, line := range lines {
		if lines[i] = Text(strings.TrimSuffix(line, "\r")); i > 0 {
			lines[i] = "  " + who + ": " + lines[i]
		}
	}
	return strings.Join(lines, "\n")
}
