package dataset

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/xtts-host/xtts-host/shared/unpack"
)

// writeFile writes a file of the cache: a temporary one that is renamed, so a reader never sees a partial file.
func writeFile(file string, parts ...[]byte) (err error) {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	unpack.Sweep(filepath.Join(dir, "recordings-*.tmp"))
	f, err := os.CreateTemp(dir, filepath.Base(file)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, f.Close())
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	lock, err := unpack.Lock(f.Name())
	if err != nil {
		return err
	}
	defer lock.Close()
	for _, p := range parts {
		if _, err := f.Write(p); err != nil {
			return err
		}
	}
	return os.Rename(f.Name(), file)
}
