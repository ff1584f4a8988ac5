package manifest

import (
	"path"
	"slices"
	"strings"
)

// Matches reports whether a pattern matches the parameter's name, one of its aliases, or the name of a module that
// contains it. Names are those of PyTorch's state_dict: text_encoder.norm.weight is in text_encoder.norm and in
// text_encoder. In a pattern, * is any text, also across dots, ? one character and [abc] one of these.
func (p Parameter) Matches(pattern string) (bool, error) {
	for _, name := range append([]string{p.Name}, p.Aliases...) {
		for _, candidate := range Modules(name) {
			if ok, err := path.Match(flat(pattern), flat(candidate)); ok || err != nil {
				return ok, err
			}
		}
	}
	return false, nil
}

// MatchesAny reports whether one of the patterns, which Bundle.check has read, matches the parameter.
func (p Parameter) MatchesAny(patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		ok, err := p.Matches(pattern)
		return ok && err == nil
	})
}

// Modules returns the names of a parameter and of the modules that contain it, the longest first.
func Modules(name string) []string {
	all := []string{name}
	for i := strings.LastIndexByte(name, '.'); i > 0; i = strings.LastIndexByte(name[:i], '.') {
		all = append(all, name[:i])
	}
	return all
}

// flat hides slashes from path.Match, whose * does not cross them.
func flat(s string) string { return strings.ReplaceAll(s, "/", "\x00") }
