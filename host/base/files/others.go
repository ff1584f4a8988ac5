package files

import (
	"fmt"
	"os"
	"syscall"
)

// OtherOwner names another user who can change a file or a folder, or is "" if there is none: everyone, or an owner
// other than this user and root. For root a group counts, too. It is "" for a path that cannot be read; whoever uses it
// gets the error.
func OtherOwner(path string, uid int) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	// in such a folder, only owners remove files
	case info.Mode()&0o002 != 0 && !(info.IsDir() && info.Mode()&os.ModeSticky != 0):
		return "everyone"
	case uid == 0 && info.Mode()&0o020 != 0 && ok && stat.Gid != 0:
		return fmt.Sprintf("group %d", stat.Gid)
	case ok && stat.Uid != 0 && int(stat.Uid) != uid:
		return fmt.Sprintf("user %d", stat.Uid)
	}
	return ""
}
