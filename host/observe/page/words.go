package page

import (
	"html/template"
	"regexp"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// Where a line may not break, and where it may although nothing shows it.
var (
	flag   = regexp.MustCompile(`(^|[^\w-])(--[a-z][a-z0-9-]{0,30}[a-z0-9])\b`)
	single = regexp.MustCompile(`\S{12,}`)
	joints = regexp.MustCompile(`[/_:=@]+|\.[\pL\pN]`)
)

// words is text whose lines break where a reader expects it on a narrow page: not in a flag such as --batch-size, and
// in a path or the name of a tensor rather after a slash or before a dot than within a word.
func words(s string) template.HTML {
	s = visible.Short(s, maxText)
	var b strings.Builder
	write := func(part string) {
		at := 0
		for _, long := range single.FindAllStringIndex(part, -1) {
			for _, joint := range joints.FindAllStringIndex(part[long[0]:long[1]], -1) {
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
