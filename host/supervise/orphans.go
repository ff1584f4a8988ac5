package supervise

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// family are the processes below the host. The host is their subreaper (PR_SET_CHILD_SUBREAPER), so it becomes the
// parent of every process whose own parents have ended, in whatever group or session that is, and must reap it. The
// mutex is held while a plugin is started and while processes are listed, so a listed process id is never reused.
var family = struct {
	sync.Mutex
	plugins map[int]*child // by process id; os/exec reaps them
}{plugins: map[int]*child{}}

// socketVariable names the folder of the socket of one plugin process. No other process has the same folder, so it
// marks the descendants of that process.
const socketVariable = "PLUGIN_UNIX_SOCKET_DIR"

// orphan is a child of the host that the host has not started.
type orphan struct {
	pid, group int
	name       string
	zombie     bool
}

// endOrphans kills and reaps the processes that a plugin process has left, and returns those that had left its process
// group. The plugin process must have ended. A process that was started with another environment is not found.
func endOrphans(c *child) (escaped []string) {
	for {
		found := killOrphans(c)
		if len(found) == 0 {
			reapZombies()
			return escaped
		}
		for _, o := range found {
			if o.group != c.cmd.Process.Pid {
				escaped = append(escaped, fmt.Sprintf("%s (process %d)", o.name, o.pid))
			}
			reap(o.pid, 0) // its children become the host's
		}
	}
}

// killOrphans kills the present orphans of a plugin process.
func killOrphans(c *child) []orphan {
	family.Lock()
	defer family.Unlock()
	mark := []byte(socketVariable + "=" + c.socketDir)
	found := slices.DeleteFunc(orphans(), func(o orphan) bool {
		return o.group != c.cmd.Process.Pid && (c.socketDir == "" || !marked(o.pid, mark))
	})
	for _, o := range found {
		unix.Kill(o.pid, unix.SIGKILL)
	}
	return found
}

// reapZombies reaps orphans that have ended by themselves. A process in the host's own group may be one that another
// package has started and waits for.
func reapZombies() {
	var ended unix.Siginfo
	if err := unix.Waitid(unix.P_ALL, 0, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil); err != nil || ended.Signo == 0 {
		return // no child has ended: so there is no need to list them
	}
	family.Lock()
	defer family.Unlock()
	for _, o := range orphans() {
		if o.zombie && o.group != unix.Getpgrp() {
			reap(o.pid, unix.WNOHANG)
		}
	}
}

func reap(pid, options int) {
	for unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|options, nil) == unix.EINTR {
	}
}

// orphans lists the host's children that are no plugins. The caller holds family. The list is empty if the kernel does
// not list children (CONFIG_PROC_CHILDREN).
func orphans() []orphan {
	var all []orphan
	lists, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is valid
	for _, list := range lists {
		pids, _ := os.ReadFile(list) // a thread that has ended has no children
		for _, field := range strings.Fields(string(pids)) {
			pid, err := strconv.Atoi(field)
			if err != nil || family.plugins[pid] != nil {
				continue
			}
			if o, ok := statOf(pid); ok {
				all = append(all, o)
			}
		}
	}
	return all
}

// statOf reads /proc/PID/stat: pid (name) state parent group, where the name may contain anything.
func statOf(pid int) (orphan, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	begin, end := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	if err != nil || begin < 0 || end < begin {
		return orphan{}, false
	}
	fields := strings.Fields(string(stat[end+1:]))
	if len(fields) < 3 {
		return orphan{}, false
	}
	group, err := strconv.Atoi(fields[2])
	return orphan{pid: pid, group: group, name: string(stat[begin+1 : end]), zombie: fields[0] == "Z"}, err == nil
}

// marked reports whether a process has the variable in the environment that it was started with.
func marked(pid int, variable []byte) bool {
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return bytes.Equal(kv, variable) })
}
