package supervise

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDebugger stops a process, in a call and between health checks, for longer than every limit. It is killed, but not
// while someone may debug it.
func TestDebugger(t *testing.T) {
	const limit = 100 * time.Millisecond
	for _, debug := range []bool{false, true} {
		t.Run(fmt.Sprint(debug), func(t *testing.T) {
			r := newRig(t, "ok")
			r.CallTimeout, r.HealthInterval, r.HealthTimeout, r.DrainTimeout = limit, limit/10, limit, limit
			var mu sync.Mutex
			var lines []string
			if debug {
				r.Debug = func(line string) { mu.Lock(); defer mu.Unlock(); lines = append(lines, line) }
			}
			p := r.open()
			pid := p.PIDs()[0]
			stopFor(t, pid, 5*limit)
			_, err := callSlot(t, p, 0)
			if !debug {
				if err == nil || p.Stats().Lost == 0 {
					t.Errorf("the process was waited for: %v", err)
				}
				return
			}
			if err != nil || p.Stats().Restarts > 0 {
				t.Errorf("%v, %+v", err, p.Stats())
			}
			stopFor(t, pid, 5*limit)
			if err := p.Drain(t.Context()); err != nil {
				t.Error("the end: ", err)
			}
			if want := fmt.Sprintf("plugin fake: pid %d; dlv attach %d", pid, pid); strings.Join(lines, "\n") != want {
				t.Errorf("%q, want %q once", lines, want)
			}
		})
	}
}

// stopFor stops a process now, and lets it go on after a time.
func stopFor(t *testing.T, pid int, d time.Duration) {
	t.Helper()
	unix.Kill(pid, unix.SIGSTOP)
	eventually(t, "stop", func() bool { return state(pid) == "T" })
	time.AfterFunc(d, func() { unix.Kill(pid, unix.SIGCONT) })
}

// TestCloseWhileStopped: the end of the host does not wait for a process that a debugger has stopped.
func TestCloseWhileStopped(t *testing.T) {
	r := newRig(t, "ok")
	r.Debug = func(string) {}
	p := r.open()
	stopFor(t, p.PIDs()[0], time.Hour)
	began := time.Now()
	p.Close()
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it takes %v", took)
	}
}

// TestHangAtStart: a process that makes no handshake is named all the same.
func TestHangAtStart(t *testing.T) {
	r := newRig(t, "hang-at-start")
	r.StartTimeout = time.Nanosecond // which --debug replaces
	said := make(chan string, 2)     // a process that was killed from outside is started once more
	r.Debug = func(line string) {
		said <- line
		unix.Kill(-pidOf(t, line), unix.SIGKILL)
	}
	r.refuse()
	if len(said) != 2 {
		t.Errorf("%d lines for two processes", len(said))
	}
}

func pidOf(t *testing.T, line string) (pid int) {
	t.Helper()
	if _, err := fmt.Sscanf(line, "plugin fake: pid %d;", &pid); err != nil {
		t.Error(err)
	}
	return pid
}

// TestAttachLine: the debugger is that of the program, which may be the child of a shell.
func TestAttachLine(t *testing.T) {
	for name, want := range map[string]string{
		"exec sleep 60":  "gdb -p %d",
		"sleep 60; true": "gdb -p %d",
		"exec python3 -c 'import time; time.sleep(60)'": "python -m debugpy --listen 5678 --pid %d",
	} {
		cmd := exec.Command("/bin/sh", "-c", name)
		cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
		if strings.Contains(name, "python") {
			if _, err := exec.LookPath("python3"); err != nil {
				continue
			}
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		pid := cmd.Process.Pid
		var line string
		eventually(t, name, func() bool {
			line = attachLine("x", pid)
			shown := behindShell(pid)
			return (strings.Contains(name, "exec") == (shown == pid)) && programName(shown) != "sh" &&
				programName(shown) != "dash" && line == fmt.Sprintf("plugin x: pid %d; "+want, shown, shown)
		})
		unix.Kill(-pid, unix.SIGKILL)
		cmd.Wait()
	}
	if line := attachLine("x", os.Getpid()); !strings.HasSuffix(line, fmt.Sprint("dlv attach ", os.Getpid())) {
		t.Error(line)
	}
}
