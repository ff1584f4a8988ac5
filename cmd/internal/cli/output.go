package cli

import (
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/visible"
)

// output is the standard output for commands that draw neither a bar nor wide tables. On a terminal its lines are
// folded, but no data: JSON or sound.
func output(data bool) io.Writer {
	if data {
		return os.Stdout
	}
	return folded(os.Stdout)
}

// folded returns a writer that shows foreign text as text (package visible), and folds lines if the file is a terminal.
func folded(f *os.File) io.Writer {
	if width := columns(f); width > 0 {
		return visible.NewWriter(fold.NewWriter(f, width))
	}
	return visible.NewWriter(f)
}

// keepPaths keeps the paths whole that messages may have before the settings are known: those of the command line, and
// the folders in which the program works.
func keepPaths(args []string) {
	for _, word := range args {
		_, value, _ := strings.Cut(word, "=")
		fold.Keep(word, value)
	}
	fold.Keep(".", os.TempDir())
	for _, folder := range []func() (string, error){os.Executable, os.UserHomeDir, os.UserCacheDir} {
		if path, err := folder(); err == nil {
			fold.Keep(path, filepath.Dir(path), filepath.Dir(filepath.Dir(path)))
		}
	}
}

// terminal reports whether a bar can be drawn on f: it is a terminal that can move its cursor and knows its width.
func terminal(f *os.File) bool { return os.Getenv("TERM") != "dumb" && columns(f) > 0 }

// columns is the width of a terminal that knows it, and 0 for any other file.
func columns(f *os.File) int {
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
