package freeze

import (
	"cmp"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/shared/manifest"
)

// nearest returns the three names of parameters and modules that are most similar to a pattern.
func nearest(pattern string, parameters []manifest.Parameter) []string {
	text := strings.Trim(strings.NewReplacer("*", "", "?", "").Replace(pattern), ".")
	distances := map[string]int{}
	var names []string
	for _, p := range parameters {
		for _, name := range manifest.Modules(p.Name) {
			if _, ok := distances[name]; !ok {
				distances[name] = distance(text, name)
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(distances[a], distances[b]), cmp.Compare(a, b)) })
	return names[:min(3, len(names))]
}

// distance is the number of bytes to insert, remove or replace to change one text into the other.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := corner
			if a[i] != b[j] {
				replaced++
			}
			corner = row[j+1]
			row[j+1] = min(replaced, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
