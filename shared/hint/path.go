package hint

import "strings"

// plain are the bytes that no shell gives a meaning.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+=@%,:"

// Path returns a path as a POSIX shell takes it, so that a command in a hint can be copied: in single quotes unless it
// is made of plain characters only.
func Path(path string) string {
	if path != "" && strings.Trim(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
