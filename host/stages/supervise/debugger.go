package supervise

import (
	"bytes"
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// never is a deadline that does not pass: some 146 years. It can be added to the time of today, and to itself.
const never = time.Duration(1 << 62)

// withoutDeadlines replaces all deadlines of processes: a debugger stops a process for as long as a person thinks. What
// is left is how long a process that the host has killed may take to end.
func (c *Config) withoutDeadlines() {
	for _, d := range []*time.Duration{
		&c.StartTimeout, &c.ConfigureTimeout, &c.CallTimeout, &c.DrainTimeout, &c.HealthTimeout,
	} {
		*d = never
	}
}

// announceDelay is how long the line about a process waits for its handshake. Until then it may be a shell that becomes
// the program, which has another debugger.
const announceDelay = time.Second

// announcer calls Config.Debug once for a process.
type announcer struct {
	once  sync.Once
	timer *time.Timer
}

// announce says how to attach to the process: at its handshake, or later if it makes none. It does nothing without
// Config.Debug.
func (p *process) announce(phase Phase) {
	if p.cfg.Debug == nil {
		return
	}
	say := func() {
		p.announcer.once.Do(func() { p.cfg.Debug(attachLine(p.cfg.Plugin.Name(), p.child.cmd.Process.Pid)) })
	}
	switch phase {
	case Start:
		p.announcer.timer = time.AfterFunc(announceDelay, func() {
			if p.ctx.Err() == nil {
				say()
			}
		})
	case Handshake:
		p.announcer.timer.Stop()
		say()
	}
}

// attachLine names the process of a plugin and the command that attaches the usual debugger of its language.
func attachLine(plugin string, pid int) string {
	pid = behindShell(pid)
	how := fmt.Sprintf("gdb -p %d", pid)
	program := fmt.Sprintf("/proc/%d/exe", pid)
	if _, err := buildinfo.ReadFile(program); err == nil {
		how = fmt.Sprintf("dlv attach %d", pid)
	} else if strings.HasPrefix(programName(pid), "python") {
		how = fmt.Sprintf("python -m debugpy --listen 5678 --pid %d", pid)
	}
	return fmt.Sprintf("plugin %s: pid %d; %s", plugin, pid, how)
}

// programName is the name of the file that a process runs, or "".
func programName(pid int) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return filepath.Base(path)
}

// behindShell returns the process that a shell has started and waits for, if that is all it does, or else the process
// itself.
func behindShell(pid int) int {
	for range 8 {
		switch programName(pid) {
		case "sh", "dash", "bash", "busybox", "zsh", "ksh":
		default:
			return pid
		}
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
		children := bytes.Fields(text)
		if err != nil || len(children) != 1 {
			return pid
		}
		child, err := strconv.Atoi(string(children[0]))
		if err != nil {
			return pid
		}
		pid = child
	}
	return pid
}
