package supervise

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// family are the processes below the host. The host is their subreaper (PR_SET_CHILD_SUBREAPER), so it becomes the
// parent of every process whose own parents have ended, in whatever group or session that is, and must reap it. The
// mutex is held while a plugin is started and while processes are listed, so a listed process id is never reused.
var family = struct {
	sync.Mutex
	plugins   map[int]*child // by process id; os/exec reaps them
	remaining map[int]bool   // orphans that did not end and have been reported, by process id
}{plugins: map[int]*child{}, remaining: map[int]bool{}}

// socketVariable names the folder of the socket of one plugin process. No other process has the same folder, so it
// marks the descendants of that process.
const socketVariable = "PLUGIN_UNIX_SOCKET_DIR"

// orphan is a child of the host that the host has not started.
type orphan struct {
	pid, group int
	name       string
	zombie     bool
	refusal    error // to let the host kill it
}

func (o orphan) String() string { return fmt.Sprintf("%s (process %d)", o.name, o.pid) }

var (
	errHangs  = errors.New("killed, but it hangs in the kernel")
	errNoTime = errors.New("killed, but there was no time to wait for its end")
)

// orphanReport is what became of the processes that a plugin process left.
type orphanReport struct {
	escaped   []string // had left its process group and were ended
	remaining []string // did not end, with the reason
}

// reaper ends the processes that plugin processes leave.
type reaper struct {
	kill    func(pid int, signal unix.Signal) error
	environ func(pid int) ([]byte, error)
	// limit is how long all of them together may take to end. It is shorter than killTimeout, so that the message names
	// them and not the plugin process.
	limit time.Duration
}

// endOrphans kills and reaps the processes that a plugin process has left, and those whose parents it has killed. Some
// may remain after the limit: a process of another user (setuid) must not be killed, one may hang in the kernel, and
// new ones may appear until then. The plugin process must have ended.
func (r reaper) endOrphans(c *child) (all orphanReport) {
	defer reapZombies()
	end := time.Now().Add(r.limit)
	for reason := errHangs; ; reason = errNoTime { // the processes found first have the whole limit to end
		found := r.killOrphans(c)
		if len(found) == 0 {
			return all
		}
		late := reason == errNoTime && time.Now().After(end)
		for _, o := range found {
			switch {
			case late, !reapBefore(o.pid, end):
				o.remains()
				all.remaining = append(all.remaining, fmt.Sprintf("%v: %v", o, cmp.Or(o.refusal, reason)))
			case o.group != c.cmd.Process.Pid:
				all.escaped = append(all.escaped, o.String())
			}
		}
		if late {
			return all
		}
	}
}

// remains excludes an orphan from later searches, also for other plugin processes, until it is reaped.
func (o orphan) remains() {
	family.Lock()
	defer family.Unlock()
	family.remaining[o.pid] = true
}

// killOrphans kills the present orphans of a plugin process.
func (r reaper) killOrphans(c *child) []orphan {
	family.Lock()
	defer family.Unlock()
	found := slices.DeleteFunc(orphans(), func(o orphan) bool { return family.remaining[o.pid] || !r.leftBy(c, o) })
	for i, o := range found {
		if err := r.kill(o.pid, unix.SIGKILL); err != nil {
			found[i].refusal = fmt.Errorf("kill: %w", err)
		}
	}
	return found
}

// leftBy reports whether an orphan counts as left by a plugin process that has ended: it is in the process's group, or
// was started with the folder of its socket in the environment. One that was started with another environment is not
// found.
//
// The environment of a program with the rights of another user (setuid) cannot be read. Such an orphan may write to the
// ring, so it counts as left, unless it is in the group of another plugin process, or in the host's: other packages
// start processes there. The caller holds family.
func (r reaper) leftBy(c *child, o orphan) bool {
	if o.group == c.cmd.Process.Pid {
		return true
	}
	environ, err := r.environ(o.pid)
	if errors.Is(err, fs.ErrPermission) {
		return !o.zombie && o.group != unix.Getpgrp() && family.plugins[o.group] == nil
	}
	mark := []byte(socketVariable + "=" + c.socketDir)
	return c.socketDir != "" &&
		slices.ContainsFunc(bytes.Split(environ, []byte{0}), func(kv []byte) bool { return bytes.Equal(kv, mark) })
}

// readEnviron returns the environment that a process was started with.
func readEnviron(pid int) ([]byte, error) { return os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)) }

// reapZombies reaps orphans that have ended by themselves. A process in the host's own group may be one that another
// package has started and waits for.
func reapZombies() {
	var ended unix.Siginfo
	err := unix.Waitid(unix.P_ALL, 0, &ended, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err != nil || ended.Signo == 0 {
		return // no child has ended: so there is no need to list them
	}
	family.Lock()
	defer family.Unlock()
	for _, o := range orphans() {
		if o.zombie && o.group != unix.Getpgrp() {
			reap(o.pid)
		}
	}
}

// reapBefore waits until a process has ended, and reaps it. It returns false if that takes too long.
func reapBefore(pid int, end time.Time) bool {
	reaped := func() bool {
		family.Lock()
		defer family.Unlock()
		return family.plugins[pid] != nil || reap(pid) // reapZombies may have reaped it, and a plugin got its id
	}
	for pause := time.Millisecond; !reaped(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
		time.Sleep(pause) // the kernel gives no signal for one child only
	}
	return true
}

// reap reaps a process if it has ended, and reports whether it has. The caller holds family.
func reap(pid int) bool {
	var info unix.Siginfo
	for {
		switch unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG, nil) {
		case unix.EINTR:
			continue
		case nil:
			if info.Signo == 0 { // it runs
				return false
			}
		} // after another error: someone else has reaped it
		delete(family.remaining, pid)
		return true
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
