package selection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// nearest returns a hint: the three names of parameters and modules that are most similar to a pattern if the first of
// them is near, otherwise the outermost modules.
func nearest(pattern string, parameters []manifest.Parameter) string {
	text := strings.Trim(strings.NewReplacer("*", "", "?", "").Replace(pattern), ".")
	distances := map[string]int{}
	var names, outermost []string
	for _, p := range parameters {
		for _, name := range manifest.Modules(p.Name) {
			if _, ok := distances[name]; ok {
				continue
			}
			distances[name] = hint.Distance([]rune(text), []rune(name))
			if names = append(names, name); !strings.Contains(name, ".") {
				outermost = append(outermost, name)
			}
		}
	}
	slices.SortFunc(names,
		func(a, b string) int { return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b)) })
	if distances[names[0]] <= (len(text)+2)/3 {
		return "the nearest names are " + strings.Join(names[:min(3, len(names))], ", ")
	}
	more := ""
	if n := len(outermost) - mostModules; n > 0 {
		more = fmt.Sprintf(" and %d more (%s)", n, hint.Command("graph inspect"))
	}
	return "the outermost names are " + strings.Join(outermost[:min(mostModules, len(outermost))], ", ") + more
}

// mostModules limits a list of names.
const mostModules = 10
