package cachedir

import (
	"fmt"
	"path/filepath"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// Exposed returns a line if another user can change a cache or a folder in it: what is there is believed. flag names
// the cache.
func Exposed(flag, dir string, uid int) []string {
	paths := []string{dir}
	entries, _ := files.In(dir).ReadDir() // whoever uses it gets the error
	for _, e := range entries {
		if e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	for _, path := range paths {
		if who := files.OtherOwner(path, uid); who != "" {
			return []string{fmt.Sprintf("%s can change %s, and a run believes what it finds in the folder of %s: take "+
				"that right away with chmod or chown, or name another folder",
				who, path, flag)}
		}
	}
	return nil
}
