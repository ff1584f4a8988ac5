package catalog

import (
	"fmt"
	"os"
	"syscall"
)

// Exposed returns a line for each folder and program that another user can change: they decide what runs with the rights of
// this one. Everyone's right to write counts always. As root, that of a group and of another owner counts, too.
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
		info, err := os.Stat(path)
		if err != nil {
			continue // starting it reports the error
		}
		who := ""
		switch stat, ok := info.Sys().(*syscall.Stat_t); {
		case info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0:
			who = "everyone"
		case uid == 0 && info.Mode()&0o020 != 0 && ok && stat.Gid != 0:
			who = fmt.Sprintf("group %d", stat.Gid)
		case uid == 0 && ok && stat.Uid != 0:
			who = fmt.Sprintf("user %d", stat.Uid)
		}
		if who != "" {
			lines = append(lines, fmt.Sprintf("%s can change %s, and plugins run with your rights: take that right away with chmod or chown", who, path))
		}
	}
	return lines
}
