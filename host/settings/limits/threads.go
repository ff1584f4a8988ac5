package limits

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// threads returns the number of threads of all processes of this user, which RLIMIT_NPROC limits, or 0 if the user is
// root, who has no such limit, or /proc cannot be read.
func threads(proc string) (sum int64) {
	user := os.Getuid()
	if user == 0 {
		return 0
	}
	processes, err := filepath.Glob(filepath.Join(proc, "[0-9]*"))
	if err != nil {
		return 0
	}
	for _, dir := range processes {
		var info unix.Stat_t
		if unix.Stat(dir, &info) != nil || int(info.Uid) != user {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(dir, "status")) // or the process has ended
		if _, rest, ok := bytes.Cut(status, []byte("\nThreads:")); ok {
			count, _, _ := bytes.Cut(rest, []byte("\n"))
			n, _ := strconv.ParseInt(string(bytes.TrimSpace(count)), 10, 64)
			sum += n
		}
	}
	return sum
}
