package catalog

import (
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/stages/signature"
)

// RequireSigned returns an error that names the first plugin that is not signed by the key that the user knows for it,
// or that has changed since it was installed. The plugins that come with the program are as trusted as the program,
// where they are beside it with the checksums of its build.
func RequireSigned(plugins []Entry) error {
	keys, err := signature.LoadKeys()
	if err != nil {
		return err
	}
	for _, e := range plugins {
		if e.comesWithProgram() {
			continue
		}
		if err := keys.Require(e.Name(), e.Dir); err != nil {
			return err
		}
	}
	return nil
}

// comesWithProgram reports whether the entry is a plugin of this program, in the folder that it was built in.
func (e *Entry) comesWithProgram() bool {
	if _, ok := included[e.Name()]; !ok || e.State != Verified {
		return false
	}
	real, err := filepath.EvalSymlinks(filepath.Join(builtFolder(), e.Name()))
	return err == nil && real == e.Dir
}
