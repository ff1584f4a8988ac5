package layout

import (
	"strings"
	"unicode/utf8"
)

// lengths reports whether whole numbers are the lengths of the texts, in characters or words, or of the recordings, and
// whether that is sure: a few small numbers may be those of speakers, too. No clip has the length 0.
func (e *evidence) lengths(column, text int, paths bool) (is, sure bool) {
	characters, words, seconds, n := 0, 0, 0, 0
	l := Layout{Base: e.d.Base, Columns: []Role{ID}}
	if paths {
		l.Columns[0] = Path
	}
	for i := 0; i < len(e.v.samples); i += 1 + len(e.v.samples)/32 {
		f := e.v.samples[i].fields
		if max(column, text, e.key) >= len(f) {
			continue
		}
		value := parseWhole(f[column])
		if n++; value == 0 {
			return false, false
		}
		if d := value - utf8.RuneCountInString(strings.TrimSpace(f[text])); d >= -2 && d <= 2 {
			characters++
		}
		if value == len(strings.Fields(f[text])) {
			words++
		}
		if file, ok := e.src.Find(l.Audio(strings.TrimSpace(f[e.key]))); ok {
			length, err := e.src.Seconds(file)
			if err == nil && float64(value) >= length-1 && float64(value) <= length+1 {
				seconds++
			}
		}
	}
	is = n > 1 && (characters == n || words == n || seconds == n)
	return is, is && len(e.v.columns[column].values) >= 3 || e.v.columns[column].many
}

func parseWhole(text string) (n int) {
	for _, b := range []byte(strings.TrimSpace(text)) {
		if b >= '0' && b <= '9' && n < 1e9 {
			n = 10*n + int(b-'0')
		}
	}
	return n
}
