package catalog

import (
	"fmt"

	"github.com/xtts-host/xtts-host/host/base/files"
)

// Exposed returns a line for each folder and program that another user can change: they decide what runs with the
// rights of this one.
func Exposed(dir string, entries []Entry, uid int) []string {
	paths := []string{dir}
	for _, e := range entries {
		paths = append(paths, e.Dir)
		if len(e.Command) > 0 {
			paths = append(paths, e.Command[0])
		}
	}
	var lines []string
	for _, path := range paths {
		if who := files.OtherOwner(path, uid); who != "" {
			lines = append(lines, fmt.Sprintf(
				"%s can change %s, and plugins run with your rights: take that right away with chmod or chown", who,
				path))
		}
	}
	return lines
}
