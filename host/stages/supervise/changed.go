package supervise

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/exit"
)

// ErrChanged means that a process ended and the plugin's files are not those that the pool started. The pool has failed
// permanently.
var ErrChanged = exit.New(exit.StatusPlugin, "it was changed during the run")

// program is the plugin's files as they were when the pool started, by path.
type program map[string]os.FileInfo

func programOf(dir string, command []string) program {
	p := program{}
	for _, arg := range command {
		path := arg
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			p[path] = info
		}
	}
	return p
}

// changed returns an error if a file was removed or replaced. The same bytes in another file, which the sum of the
// executable shows, are no change.
func (p program) changed(executable, sum string) error {
	for path, was := range p {
		now, err := os.Stat(path)
		switch {
		case err != nil:
			return fmt.Errorf("%w: %w", ErrChanged, err)
		case os.SameFile(was, now) && was.Size() == now.Size() && was.ModTime().Equal(now.ModTime()):
		case path == executable && sum != "" && checkSum(path, sum) == nil:
		default:
			return fmt.Errorf("%w: %s is another file than at the start", ErrChanged, path)
		}
	}
	return nil
}

// changedHint is the hint for ErrChanged.
const changedHint = "put back the files that the run started with, or start again with the new ones; do not " +
	"replace a " +
	"plugin while it is in use"
