package synthesize

import (
	"strings"
	"unicode"
)

// Where a text may be divided, best first: after the end of a sentence, after another mark, at white space. Chinese and
// Japanese have no space after their marks, so these divide alone.
var (
	ends      = marks{"!?.…؟۔।", "。！？"}
	commas    = marks{",;:،؛—–", "，、；："}
	closings  = "\"'”’»)]}」』"
	dividings = []func(string) []string{ends.divide, commas.divide, strings.Fields}
)

// marks are marks with which a part of a text ends: those that white space follows, and those that stand alone.
type marks struct{ spaced, alone string }

// divide divides a text after the marks, and removes the white space there.
func (m marks) divide(text string) (parts []string) {
	runes := []rune(text)
	start := 0
	for i := 0; i < len(runes); i++ {
		alone := strings.ContainsRune(m.alone, runes[i])
		if !alone && !strings.ContainsRune(m.spaced, runes[i]) {
			continue
		}
		for i+1 < len(runes) && strings.ContainsRune(m.spaced+m.alone+closings, runes[i+1]) {
			i++
		}
		if alone || i+1 < len(runes) && unicode.IsSpace(runes[i+1]) {
			parts = append(parts, strings.TrimSpace(string(runes[start:i+1])))
			start = i + 1
		}
	}
	if rest := strings.TrimSpace(string(runes[start:])); rest != "" {
		parts = append(parts, rest)
	}
	return parts
}

// pieces divides a text into pieces that fit, as few as possible without dividing a line, a sentence or a clause that
// fits. What does not fit and cannot be divided is returned as too long.
func pieces(text string, fits func(string) bool) (list []string, long string) {
	for line := range strings.Lines(text) {
		parts, long := within(strings.TrimSpace(line), fits, dividings)
		if long != "" {
			return nil, long
		}
		list = append(list, parts...)
	}
	return list, ""
}

// within divides a text in the first of these ways, and parts that do not fit in the next. A piece has what is between its parts as the
// text has it: languages without spaces get none.
func within(text string, fits func(string) bool, ways []func(string) []string) (list []string, long string) {
	if text == "" {
		return nil, ""
	}
	if fits(text) {
		return []string{text}, ""
	}
	if len(ways) == 0 {
		return nil, text
	}
	first, end := 0, 0 // of the last piece
	for _, part := range ways[0](text) {
		at := end + strings.Index(text[end:], part)
		end = at + len(part)
		if len(list) > 0 && fits(text[first:end]) {
			list[len(list)-1] = text[first:end]
			continue
		}
		parts, long := within(part, fits, ways[1:])
		if long != "" {
			return nil, long
		}
		first = at + strings.LastIndex(part, parts[len(parts)-1])
		list = append(list, parts...)
	}
	return list, ""
}
