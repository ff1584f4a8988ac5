package hint

import "sync/atomic"

// name is that of the repository's program, for tests and for what is not called as a program.
const name = "xtts-host"

var called atomic.Pointer[string]

// CalledAs sets the word that a shell found the program by: the first of os.Args, such as bin/xtts-host.
func CalledAs(word string) {
	if word != "" {
		called.Store(&word)
	}
}

// Program returns the word with which a command in a hint calls this program, so that the command can be copied: the
// one that it was called by.
func Program() string {
	if word := called.Load(); word != nil {
		return Path(*word)
	}
	return name
}

// Command returns a command of this program: its word and the arguments, which a shell has to take as they are.
func Command(arguments string) string { return Program() + " " + arguments }
