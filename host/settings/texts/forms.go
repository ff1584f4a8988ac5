package texts

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// compatible are the characters that are other forms of letters, digits and marks, kept for older encodings: their
// compatibility decomposition (Unicode Standard Annex 15, NFKC) is what they stand for. Characters that mean something
// else than it, such as ², ½ and ™, are not among them.
var compatible = &unicode.RangeTable{R16: []unicode.Range16{
	{0x0132, 0x0133, 1}, {0x013F, 0x0140, 1}, {0x0149, 0x0149, 1}, {0x017F, 0x017F, 1}, // ĳ ŀ ŉ ſ
	{0x01C4, 0x01CC, 1}, {0x01F1, 0x01F3, 1}, // digraphs such as ǆ
	{0xFB00, 0xFB06, 1}, {0xFB13, 0xFB17, 1}, // Latin and Armenian ligatures
	{0xFB1D, 0xFB4F, 1},                      // Hebrew presentation forms
	{0xFB50, 0xFDFB, 1}, {0xFE70, 0xFEFC, 1}, // Arabic presentation forms
	{0xFE30, 0xFE44, 1}, {0xFE47, 0xFE6F, 1}, // vertical and small forms
	{0xFF01, 0xFFEE, 1}, // fullwidth and halfwidth forms
}}

// foldForms replaces compatible characters. Neighbours are replaced together: a halfwidth letter and its mark become
// one letter.
func foldForms(text string) string {
	in := func(r rune) bool { return unicode.Is(compatible, r) }
	if !strings.ContainsFunc(text, in) {
		return text
	}
	var out strings.Builder
	for text != "" {
		end := strings.IndexFunc(text, in)
		if end < 0 {
			end = len(text)
		}
		out.WriteString(text[:end])
		text = text[end:]
		if end = strings.IndexFunc(text, func(r rune) bool { return !in(r) }); end < 0 {
			end = len(text)
		}
		out.WriteString(norm.NFKC.String(text[:end]))
		text = text[end:]
	}
	return out.String()
}

// Presentation reports whether a character is another form of letters, digits or marks, which the rule forms replaces.
func Presentation(r rune) bool { return unicode.Is(compatible, r) }

// foldDigits writes decimal digits of all scripts (general category Nd) as 0 to 9, and the Arabic separators between
// digits, and the percent sign, as those of these digits (The Unicode Standard, chapter 9.2, "Arabic-Indic Digits").
func foldDigits(text string) string {
	runes := []rune(text)
	for i, r := range runes {
		if v, ok := Digit(r); ok {
			runes[i] = '0' + rune(v)
		}
	}
	digit := func(i int) bool { return i >= 0 && i < len(runes) && runes[i] >= '0' && runes[i] <= '9' }
	for i, r := range runes {
		switch {
		case r == '\u066B' && digit(i-1) && digit(i+1):
			runes[i] = '.'
		case r == '\u066C' && digit(i-1) && digit(i+1):
			runes[i] = ','
		case r == '\u066A':
			runes[i] = '%'
		}
	}
	return string(runes)
}

// Digit returns the value of a decimal digit of any script. Unicode has the ten digits of a script in a row, from zero.
func Digit(r rune) (value int, ok bool) {
	if r < 0x80 {
		return int(r - '0'), r >= '0' && r <= '9'
	}
	if !unicode.Is(unicode.Nd, r) {
		return 0, false
	}
	for _, t := range unicode.Nd.R16 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10, true
		}
	}
	for _, t := range unicode.Nd.R32 {
		if rune(t.Lo) <= r && r <= rune(t.Hi) {
			return int(r-rune(t.Lo)) % 10, true
		}
	}
	return 0, false
}

// marks are marks of punctuation with several forms that are read alike (The Unicode Standard, chapter 6.2, "Dashes and
// Hyphens", "Apostrophes" and "Quotation Marks: U+0022 and U+0027"). Dashes between words, which are a pause, and « »
// stay.
var marks = strings.NewReplacer(
	"‘", "'", "’", "'", "‚", "'", "‛", "'", "ʼ", "'", "′", "'",
	"“", `"`, "”", `"`, "„", `"`, "‟", `"`, "″", `"`,
	"‐", "-", "‑", "-", "⁃", "-", "−", "-", "‒", "–", "―", "—",
	"…", "...", "‥", "..",
)

func foldPunctuation(text string) string { return marks.Replace(text) }

// foldSpaces writes white space of any kind as one space.
func foldSpaces(text string) string { return strings.Join(strings.Fields(text), " ") }
