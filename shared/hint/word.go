package hint

import "strings"

// Word writes a file name as one word of a shell command that is not an option: quoted, if it has to be.
func Word(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	if strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r))
	}) {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}
