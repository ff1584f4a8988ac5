package layout

import (
	"strings"
	"unicode"
)

// most bounds what is kept of a list to decide: columns, and different values of one.
const (
	mostColumns = 32
	mostValues  = 4096
)

// column is what the values of a column have in common.
type column struct {
	lines, empty int
	numbers      int // values that are numbers
	points       int // and have decimals, or are times as 0:01.5
	values       map[string]int
	many         bool    // more than mostValues
	mean         float64 // words of a value, if there are many
	bytes        int
	words        int
}

func (c *column) add(value string) {
	c.lines++
	if value = strings.TrimSpace(value); value == "" {
		c.empty++
		return
	}
	if c.settled() {
		return
	}
	if number, point := isNumber(value); number {
		c.numbers++
		if point {
			c.points++
		}
	}
	if c.many {
		return
	}
	c.bytes += len(value)
	c.words += strings.Count(value, " ") + 1
	if c.values == nil {
		c.values = map[string]int{}
	}
	if c.values[value]++; len(c.values) > mostValues {
		c.mean, _ = c.prose()
		c.many, c.values = true, nil
	}
}

// settled reports whether the values are neither numbers nor names, whatever follows.
func (c *column) settled() bool { return c.many && c.numbers+c.empty < c.lines-1 }

func (c *column) full() int { return c.lines - c.empty }

// units follow numbers of lengths and of shares.
var units = []string{"%", "ms", "s", "sec", "seconds", "dB", "Hz", "kHz"}

// isNumber reports whether a value is a number or a time, and whether it has decimals or a unit.
func isNumber(v string) (number, point bool) {
	for _, unit := range units {
		if rest, ok := strings.CutSuffix(v, unit); ok {
			number, point = isNumber(strings.TrimSpace(rest))
			return number && (point || unit == "%"), number && (point || unit == "%")
		}
	}
	digits := 0
	for i, b := range []byte(v) {
		switch {
		case b >= '0' && b <= '9':
			digits++
		case b == '.' || b == ',' || b == ':':
			point = true
		case i == 0 && (b == '-' || b == '+'):
		default:
			return false, false
		}
	}
	return digits > 0, digits > 0 && point
}

// sort is what a column may be.
type sort uint8

const (
	empty   sort = iota
	decimal      // numbers with decimals: lengths
	whole        // whole numbers
	name         // few values that are no sentences, each on several lines: a speaker, a language, an emotion
	words        // anything else: texts
)

// longName is the most bytes of a name.
const longName = 64

func (c *column) sort() sort {
	switch full := c.full(); {
	case full == 0, c.only(nothing):
		return empty
	case c.numbers == full && c.points > 0:
		return decimal
	case c.numbers == full:
		return whole
	case !c.many && full > 1 && 2*len(c.values) <= full && c.longest() <= longName && !c.sentences():
		return name
	}
	return words
}

func (c *column) longest() (n int) {
	for v := range c.values {
		n = max(n, len(v))
	}
	return n
}

// few reports whether whole numbers are few enough to be those of speakers.
func (c *column) few() bool { return !c.many && 2*len(c.values) <= c.full() }

// meanWords is the number of words of a value.
func (c *column) meanWords() float64 {
	n := 0
	for _, times := range c.values {
		n += times
	}
	if n == 0 {
		return 99 // there are too many values to keep
	}
	return float64(c.words) / float64(n)
}

// only reports whether all values are in a set, without regard to case.
func (c *column) only(set map[string]bool) bool {
	for v := range c.values {
		if !set[strings.ToLower(v)] {
			return false
		}
	}
	return len(c.values) > 0
}

func setOf(list string) map[string]bool {
	set := map[string]bool{}
	for _, v := range strings.Fields(list) {
		set[v] = true
	}
	return set
}

// voices reports whether nothing but names of speakers fits the values of a column of names. What says how somebody
// speaks, or measures, dates or locates a recording, is repeated in lists as well.
func (c *column) voices() bool {
	if c.only(notVoices) {
		return false
	}
	unit, measures, dates, places := "", true, true, true
	for v := range c.values {
		number := strings.TrimRightFunc(v, unicode.IsLetter)
		u := v[len(number):]
		number = strings.TrimSpace(number)
		is, _ := isNumber(number)
		measures = measures && is && u != "" && (unit == "" || unit == u)
		unit = u
		dates = dates && strings.Trim(v, "0123456789-/.:T ") == "" && strings.ContainsAny(v, "-/.:")
		places = places && strings.Contains(v, "://")
	}
	return !measures && !dates && !places
}

// languages are codes that lists have: those of XTTS, and of the languages with the most public recordings. Two letters
// that are no code of this table may be the initials of a speaker.
var languages = setOf(
	`en es fr de it pt pl tr ru nl cs ar zh zh-cn zh-tw hu ko ja jp hi fa uk ur vi th sv da fi nb nn el he id ro bg hr sk sl
	ca eu gl ta te bn mr ml kn gu pa sw en-us en-gb en_us en_gb de-de de_de es-es es_es fr-fr fr_fr it-it pt-br pt_br pt-pt fa-ir fa_ir ru-ru
	english german french spanish italian portuguese polish turkish russian dutch czech arabic chinese hungarian korean japanese hindi persian
	yue`)

// nothing are values that stand for none.
var nothing = setOf("none null nan n/a na - _")

// notVoices are values of columns that say how or what kind of a person speaks.
var notVoices = setOf(
	`neutral happy sad angry anger fear fearful disgust disgusted surprise surprised amused sleepy calm excited whisper
	male female m f man woman child train validation valid val dev test eval
	true false yes no`)
