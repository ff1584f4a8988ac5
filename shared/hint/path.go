package hint

import "strings"

// plain are the bytes that no shell gives a meaning in the middle of a word.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-"

// Path returns a path, or the value of a flag, as a POSIX shell takes it, so that a command in a hint can be copied: in
// single quotes unless it is made of plain characters only.
func Path(path string) string { return quoted(path, plain+"+=@%,:") }

// Word writes a file name as one word of a shell command that is not an option: quoted, if it has to be.
func Word(name string) string {
	if strings.HasPrefix(name, "-") {
		name = "./" + name
	}
	return quoted(name, plain)
}

func quoted(word, plain string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
