// Package visible formats untrusted text, such as that of plugins and the names of files, so that it can neither
// control a terminal nor imitate a message of the host. It is applied where text leaves the program: [NewWriter] for a
// terminal, [Error] for an error, [JSON] for lines that programs read.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns one line in which every control character, line separator, bidirectional control, invisible character
// and byte that is not UTF-8 is written as an escape of Go: \x1b, \n, \u202e. Invisible are the characters that Unicode
// calls format characters or default ignorable. A tab and spaces stay, and so do joiners and variation selectors where
// scripts and emoji need them.
func Text(s string) string {
	shown, _ := show(0, s, false)
	return shown
}

// Block is Text of each line of a text of several lines.
func Block(s string) string {
	shown, _ := show(0, s, true)
	return shown
}

// show is Text after a character. It returns the last character. With lines, line breaks stay.
func show(before rune, s string, lines bool) (string, rune) {
	shown, last := plain(before, s, lines)
	if shown {
		return s, last
	}
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\n' && !lines:
			b.WriteString(`\n`)
		case r == '\n' || !hidden(before, r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r > 0xffff:
			fmt.Fprintf(&b, `\U%08x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		before, s = r, s[size:]
	}
	return b.String(), last
}

// plain reports whether show changes nothing, and returns the last character.
func plain(before rune, s string, lines bool) (bool, rune) {
	same := true
	for i, r := range s {
		if hidden(before, r) && (r != '\n' || !lines) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\ufffd") {
			same = false
		}
		before = r
	}
	return same, before
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

// visibleFormat are characters of the category "format" that have a form: signs of numbers and verses.
var visibleFormat = []rune{
	0x600, 0x601, 0x602, 0x603, 0x604, 0x605, 0x6dd, 0x70f, 0x890, 0x891, 0x8e2, 0x110bd, 0x110cd,
}

// hidden reports whether a character after another one is not shown as it is.
func hidden(before, r rune) bool {
	switch {
	case r < ' ':
		return r != '\t'
	case r < 0x7f:
		return false
	case r == '\u200c' || r == '\u200d': // joiners: within words of Persian and of Indian scripts, and in emoji
		return !joins(before)
	case unicode.Is(unicode.Variation_Selector, r):
		return !varies(before)
	case unicode.IsControl(r) || r == '\u2028' || r == '\u2029' ||
		unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r):
		return true
	case !unicode.Is(unicode.Cf, r):
		return false
	}
	for _, v := range visibleFormat {
		if r == v {
			return false
		}
	}
	return true
}

// varies reports whether a variation selector may follow a character: a Chinese one or one of a script of Asia with
// such forms, a symbol, or a sign that emoji are made of. More than one, which could hide a text, never stand there.
func varies(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Mongolian, unicode.Phags_Pa, unicode.Myanmar, unicode.S) &&
		!unicode.IsMark(r) ||
		strings.ContainsRune("0123456789#*‼⁉ℹ〰", r)
}

// joins reports whether a joiner may follow a character: it does in scripts that have joined forms, and in emoji.
func joins(r rune) bool {
	if unicode.In(r, unicode.Latin, unicode.Cyrillic, unicode.Greek) {
		return false
	}
	return unicode.IsLetter(r) || unicode.IsMark(r) || unicode.Is(unicode.So, r) || unicode.Is(unicode.Sk, r)
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
