package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// tasks is what limits the number of processes.
type tasks struct {
	folder string // of the cgroup in which a plugin gets one of its own; empty: the limit of the user, RLIMIT_NPROC
}

func (t tasks) String() string {
	if t.folder == "" {
		return "ulimit -u"
	}
	return "cgroup"
}

// exempt reports whether RLIMIT_NPROC does not hold: for root, but not for one that a container has made of another
// user.
func exempt() bool {
	ids, err := os.ReadFile("/proc/self/uid_map") // inside, outside, number
	fields := strings.Fields(string(ids))
	return os.Geteuid() == 0 && (err != nil || len(fields) < 2 || fields[1] == "0")
}

// findTasks returns what limits the number of processes, or why nothing does. noLimit says that RLIMIT_NPROC does not.
func findTasks(noLimit bool) (tasks, string) {
	if !noLimit {
		return tasks{}, ""
	}
	folder, err := ownGroup()
	if err == nil {
		sweepGroups(folder)
		var g *group
		if g, err = newGroup(folder, maxTasks); err == nil {
			g.remove()
			return tasks{folder}, ""
		}
	}
	return tasks{}, fmt.Sprintf("for root ulimit -u does not hold, and no cgroup for pids can be made: %v", err)
}

// ownGroup returns the folder of this process's cgroup with the controller pids: of cgroup v1, or else of cgroup v2.
func ownGroup() (string, error) {
	groups, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	return groupFolder(string(groups), string(mounts))
}

// groupFolder finds the folder in the texts of /proc/self/cgroup and /proc/self/mountinfo.
func groupFolder(groups, mounts string) (string, error) {
	var one, two string // the paths of the cgroups of both versions
	for line := range strings.Lines(groups) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // id:controllers:path
		switch {
		case len(parts) < 3:
		case parts[0] == "0" && parts[1] == "":
			two = parts[2]
		case parts[1] == "pids":
			one = parts[2]
		}
	}
	var second string
	for line := range strings.Lines(mounts) {
		left, right, ok := strings.Cut(line, " - ") // ... root mountpoint ... - type source options
		place, kind := strings.Fields(left), strings.Fields(right)
		if !ok || len(place) < 5 || len(kind) < 3 {
			continue
		}
		below := func(path string) string {
			rel, err := filepath.Rel(place[3], path)
			if err != nil || strings.HasPrefix(rel, "..") {
				return ""
			}
			return filepath.Join(place[4], rel)
		}
		switch {
		case kind[0] == "cgroup" && one != "" && strings.Contains(","+kind[2]+",", ",pids,"):
			if folder := below(one); folder != "" {
				return folder, nil
			}
		case kind[0] == "cgroup2" && two != "" && second == "":
			second = below(two)
		}
	}
	if second == "" {
		return "", errors.New("there is none")
	}
	return second, nil
}

// group is a cgroup of one plugin process.
type group struct{ folder string }

// groupPrefix begins the names of the cgroups. The id of the host follows.
const groupPrefix = "xtts-plugin-"

var groupCount atomic.Int64

// newGroup makes a cgroup in that of the host, with a limit of its number of processes. In cgroup v2 that works only
// where the controller is enabled for the children of the host's cgroup.
func newGroup(parent string, most int) (*group, error) {
	g := &group{filepath.Join(parent, fmt.Sprintf("%s%d-%d", groupPrefix, os.Getpid(), groupCount.Add(1)))}
	if err := os.Mkdir(g.folder, 0o700); err != nil {
		return nil, err
	}
	limit, err := os.OpenFile(filepath.Join(g.folder, "pids.max"), os.O_WRONLY, 0)
	if err == nil {
		_, err = limit.WriteString(strconv.Itoa(most))
		err = errors.Join(err, limit.Close())
	}
	// No process may join a cgroup v2 that is below one with processes.
	kind, _ := os.ReadFile(filepath.Join(g.folder, "cgroup.type")) // version 1 has none
	if err == nil && bytes.HasSuffix(kind, []byte("invalid\n")) {
		err = errors.New("the cgroup of this process has no groups below it")
	}
	if err != nil {
		g.remove()
		return nil, err
	}
	return g, nil
}

// list is the file to which a process writes 0 to join the group.
func (g *group) list() string { return filepath.Join(g.folder, "cgroup.procs") }

// remove removes the group. Processes that have just ended may be counted for some milliseconds more.
func (g *group) remove() {
	for pause := time.Millisecond; pause < 100*time.Millisecond; pause *= 2 {
		if err := unix.Rmdir(g.folder); err == nil || errors.Is(err, unix.ENOENT) {
			return
		}
		time.Sleep(pause)
	}
}

// sweepGroups removes the groups that killed hosts have left.
func sweepGroups(folder string) {
	left, _ := filepath.Glob(filepath.Join(folder, groupPrefix+"*")) // the pattern is valid
	for _, path := range left {
		host, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(path), groupPrefix), "-")
		if pid, err := strconv.Atoi(host); err == nil && errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
			_ = unix.Rmdir(path) // fails while processes are in it
		}
	}
}

// limitTasks limits the processes of this user, for this process and its children: to those of the whole machine now,
// and as many more. The kernel counts all processes of the user, so a smaller limit would depend on what else runs.
func limitTasks(more int) error {
	load, err := os.ReadFile("/proc/loadavg") // 0.20 0.18 0.12 1/80 11206: running/all
	if err != nil {
		return err
	}
	fields := strings.Fields(string(load))
	if len(fields) < 4 {
		return fmt.Errorf("/proc/loadavg: %q", load)
	}
	_, all, _ := strings.Cut(fields[3], "/")
	now, err := strconv.ParseUint(all, 10, 32)
	if err != nil {
		return fmt.Errorf("/proc/loadavg: %w", err)
	}
	return lower(unix.RLIMIT_NPROC, now+uint64(more))
}

// lower sets both limits of a resource to a value, unless they are lower already.
func lower(resource int, value uint64) error {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil {
		return err
	}
	now.Max = min(now.Max, value)
	now.Cur = min(now.Cur, now.Max)
	return unix.Setrlimit(resource, &now)
}
