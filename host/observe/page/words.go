package page

import (
	"html/template"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

// maxText bounds a text of a stranger on a page, in bytes.
const maxText = 2000

// functions are those of the templates of pages. All text that may come from strangers goes through text: what it
// returns has no control characters, and the template escapes it.
var functions = template.FuncMap{
	"text":   func(s string) string { return visible.Short(s, maxText) },
	"words":  words,
	"lang":   lang,
	"number": units.Number,
	"at":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") },
}

// Where a line may not break, and where it may although nothing shows it.
var (
	flag   = regexp.MustCompile(`(^|[^\w-])(--[a-z][a-z0-9-]{0,30}[a-z0-9])\b`)
	single = regexp.MustCompile(`\S{12,}`)
	joint  = regexp.MustCompile(`[/_:=@]+|\.[\pL\pN]`)
)

// words is text whose lines break where a reader expects it on a narrow page: not in a flag such as --batch-size, and
// in a path or the name of a tensor rather after a slash or before a dot than within a word.
func words(s string) template.HTML {
	s = visible.Short(s, maxText)
	var b strings.Builder
	write := func(part string) {
		at := 0
		for _, long := range single.FindAllStringIndex(part, -1) {
			for _, joint := range joint.FindAllStringIndex(part[long[0]:long[1]], -1) {
				end := long[0] + joint[1]
				if part[long[0]+joint[0]] == '.' {
					end = long[0] + joint[0]
				}
				b.WriteString(template.HTMLEscapeString(part[at:end]) + "<wbr>")
				at = end
			}
		}
		b.WriteString(template.HTMLEscapeString(part[at:]))
	}
	at := 0
	for _, m := range flag.FindAllStringSubmatchIndex(s, -1) {
		write(s[at:m[4]])
		b.WriteString(`<span class="flag">` + s[m[4]:m[5]] + `</span>`)
		at = m[5]
	}
	write(s[at:])
	return template.HTML(b.String())
}

var tag = regexp.MustCompile(`^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8}){0,3}$`)

// lang is the language of a text as the attribute of HTML: browsers choose Chinese or Japanese forms of letters by it,
// and screen readers a voice. "" means an unknown one, rather than that of the page.
func lang(name string) string {
	if name = strings.ReplaceAll(name, "_", "-"); tag.MatchString(name) {
		return name
	}
	return ""
}

// usable is a number that the functions of package units can write: a report may have any.
func usable(v float64) bool { return !math.IsNaN(v) && math.Abs(v) < 1e15 }

// Percent writes a ratio, also one of a stranger.
func Percent(v float64) string {
	if !usable(v) || v < 0 {
		return "-"
	}
	return units.Percent(v)
}

// Milliseconds writes a time.
func Milliseconds(v float64) string {
	if !usable(v) || v < 0 {
		return "-"
	}
	if v >= 9999.5 {
		return Duration(v / 1e3)
	}
	return units.Milliseconds(v)
}

// Size writes a number of bytes.
func Size(n int64) string {
	if n < 0 {
		return "-"
	}
	return units.Size(n)
}

// Count writes a count.
func Count(n int64) string {
	if n < 0 {
		return strconv.FormatInt(n, 10)
	}
	return units.Thousands(n)
}

// Duration writes seconds.
func Duration(seconds float64) string {
	if !usable(seconds) || seconds < 0 || seconds > 9e9 {
		return "-"
	}
	return units.Duration(time.Duration(seconds * float64(time.Second)))
}

// Rate writes a speed.
func Rate(v float64) string {
	if !usable(v) || v < 0 {
		return "-"
	}
	if v >= 999.5 {
		return units.Thousands(int64(math.Round(v)))
	}
	return units.Rate(v)
}
