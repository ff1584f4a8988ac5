package cli

import (
	"io"
	"os"

	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/cmd/internal/fold"
)

// output is the standard output, whose lines are folded on a terminal, for commands without a bar and wide tables. JSON is not folded.
func output(asJSON bool) io.Writer {
	if asJSON {
		return os.Stdout
	}
	return folded(os.Stdout)
}

// folded returns a writer that folds lines if the file is a terminal. Through a pipe they are as they are.
func folded(f *os.File) io.Writer {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 1 {
		return f
	}
	return fold.NewWriter(f, width)
}

// terminal reports whether a bar can be drawn on f: it is a terminal that can move its cursor and knows its width.
func terminal(f *os.File) bool {
	if os.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}
