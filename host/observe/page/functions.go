package page

import (
	"html/template"
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
