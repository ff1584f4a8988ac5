package synthesize

import (
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// Where a text may be divided, best first: after the end of a sentence, after another mark, at white space. Chinese and
// Japanese have no space after their marks, so these divide alone. What follows is for scripts without spaces, and for
// marks of other scripts: sentences, words and characters as UAX #29 of Unicode defines them.
var (
	ends      = marks{"!?.…؟۔।", "。！？"}
	commas    = marks{",;:،؛—–", "，、；："}
	closings  = "\"'”’»)]}」』"
	dividings = []func(string) []string{ends.divide, sentences, commas.divide, strings.Fields, words, characters}
)

// sentences divides a text after its sentences (UAX #29, section 5).
func sentences(text string) (parts []string) {
	for state := -1; text != ""; {
		var part string
		part, text, state = uniseg.FirstSentenceInString(text, state)
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

// words divides a text without spaces between its words (UAX #29, section 4): in Chinese each ideograph is one, and in
// Thai, Lao, Khmer and Burmese, whose words only a dictionary knows, each character. Marks stay at the word that they
// belong to.
func words(text string) []string {
	return divided(text,
		func(text string, state int) (string, string, int) { return uniseg.FirstWordInString(text, state) })
}

// characters divides a text between user-perceived characters (UAX #29, section 3).
func characters(text string) []string {
	return divided(text, func(text string, state int) (string, string, int) {
		part, rest, _, state := uniseg.FirstGraphemeClusterInString(text, state)
		return part, rest, state
	})
}

// divided divides a text where first ends its parts, but neither before a closing mark nor after an opening one. Nor
// after a vowel that is written before the consonant that it follows, as Thai's and Lao's.
func divided(text string, first func(text string, state int) (part, rest string, after int)) (parts []string) {
	joins := false
	for state := -1; text != ""; {
		var part string
		part, text, state = first(text, state)
		runes := []rune(part)
		if closes := unicode.IsPunct(runes[0]) && !opens(runes[0]); len(parts) > 0 && (joins || closes) {
			parts[len(parts)-1] += part
		} else {
			parts = append(parts, part)
		}
		last := runes[len(runes)-1]
		joins = opens(last) || unicode.Is(unicode.Logical_Order_Exception, last)
	}
	return parts
}

// opens reports whether a mark belongs to what follows it.
func opens(mark rune) bool {
	return unicode.In(mark, unicode.Ps, unicode.Pi) || mark == '¿' || mark == '¡'
}

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

// pieces divides a text into pieces that fit, as few as possible without dividing a line, a sentence, a clause or a
// word that fits. A character that does not fit is returned as too long.
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

// within divides a text in the first of these ways, and parts that do not fit in the next. A piece has what is between
// its parts as the text has it: languages without spaces get none.
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
