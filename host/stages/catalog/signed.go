package catalog

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/stages/archive"
	"github.com/xtts-host/xtts-host/host/stages/signature"
)

// RequireSigned returns an error that names the first plugin that is not signed by the key that the user knows for it,
// or that has changed since it was installed. The plugins that come with the program are as trusted as the program,
// where they are in the folder of plugins beside it and fit their own plugin.sum. Nothing compares them with a build:
// whoever can write to that folder can write both, and the program.
func RequireSigned(plugins []Entry) error {
	keys, err := signature.LoadKeys()
	if err != nil {
		return err
	}
	for _, e := range plugins {
		if e.comesWith(builtFolder()) {
			continue
		}
		if err := keys.Require(e.Name(), e.Dir); err != nil {
			return err
		}
	}
	return nil
}

// comesWith reports whether the entry is a plugin of this program, in the folder that it was built in. One that was
// installed from an archive is none.
func (e *Entry) comesWith(built string) bool {
	if _, ok := included[e.Name()]; !ok || e.State != Verified {
		return false
	}
	if _, err := os.Lstat(filepath.Join(e.Dir, archive.Record)); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	real, err := filepath.EvalSymlinks(filepath.Join(built, e.Name()))
	return err == nil && real == e.Dir
}
