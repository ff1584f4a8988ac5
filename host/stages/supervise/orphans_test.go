package supervise

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// orphanRig returns a rig whose plugin leaves processes, with a fake for the kill that ends them. The processes end
// with the test.
func orphanRig(t *testing.T, mode string, limit time.Duration, kill func(pid int) error) *rig {
	r := newRig(t, "orphans,"+mode)
	r.reaper = reaper{limit: limit, environ: readEnviron, kill: func(pid int, _ unix.Signal) error { return kill(pid) }}
	t.Cleanup(func() {
		eventually(t, "end of the orphans", func() bool {
			family.Lock()
			left := orphans()
			family.Unlock()
			for _, o := range left {
				unix.Kill(o.pid, unix.SIGKILL)
			}
			reapZombies()
			return len(left) == 0
		})
		for _, name := range []string{"marked", "unmarked"} {
			os.Remove(filepath.Join(r.tmp, name))
		}
	})
	return r
}

// remains checks that an error names the process that was not ended, and is not one after which the pool continues.
func remains(t *testing.T, err error, reason string) {
	t.Helper()
	var e *PluginError
	want := `^plugin fake: what it has left did not end: (sleep|sh) \(process \d+\): ` + reason
	if !errors.As(err, &e) || errors.Is(err, ErrLost) || !regexp.MustCompile(want).MatchString(err.Error()) ||
		e.Hint() != remainingHint {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestOrphanThatStays: a process that cannot be ended may still write to the ring, so the pool waits for it only so
// long, names it, and accepts no more calls.
func TestOrphanThatStays(t *testing.T) {
	const short = 20 * time.Millisecond
	for reason, kill := range map[string]func(int) error{
		"kill: operation not permitted":      func(int) error { return unix.EPERM },
		"killed, but it hangs in the kernel": func(int) error { return nil },
	} {
		t.Run(reason, func(t *testing.T) {
			p := orphanRig(t, "crash-at-call=1", short, kill).open()
			for range 2 {
				_, err := callSlot(t, p, 0)
				remains(t, err, reason)
			}
			if n := p.Stats().Restarts; n != 0 {
				t.Errorf("%d restarts", n)
			}
			if err := p.Drain(t.Context()); err != nil { // the caller has the error
				t.Error(err)
			}
		})
	}
	refuse := func(int) error { return unix.EPERM }
	t.Run("end of the run", func(t *testing.T) {
		remains(t, orphanRig(t, "ok", short, refuse).open().Drain(t.Context()), "kill: ")
	})
	t.Run("failed start", func(t *testing.T) {
		r := orphanRig(t, "crash-at-configure", short, refuse)
		remains(t, r.refuse(), "kill: ")
	})
	t.Run("failed restart", func(t *testing.T) {
		var kills atomic.Int32
		var r *rig
		r = orphanRig(t, "crash-at-call=1", short, func(pid int) error {
			if kills.Add(1) > 1 {
				return unix.EPERM
			}
			os.Remove(filepath.Join(r.tmp, "marked")) // the next process leaves another one
			unix.Kill(pid, unix.SIGKILL)
			eventually(t, "end of the first", func() bool { return !running(pid) }) // which the limit is too short for
			return nil
		})
		r.Reached = func(phase Phase, id ProcessID, pid int) {
			if phase == Attach && id.Generation == 1 {
				unix.Kill(pid, unix.SIGKILL)
			}
		}
		p := r.open()
		if _, err := callSlot(t, p, 0); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
		_, err := callSlot(t, p, 0)
		remains(t, err, "kill: ")
	})
	t.Run("it ends by itself", func(t *testing.T) {
		p := orphanRig(t, "crash-at-call=1", time.Minute, func(pid int) error {
			unix.Kill(pid, unix.SIGKILL)
			return unix.EPERM
		}).open()
		if _, err := callSlot(t, p, 0); !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	})
}

// TestOrphansWithoutEnd: the wait is bounded, too, if new processes appear as fast as the host kills them.
func TestOrphansWithoutEnd(t *testing.T) {
	kills := 0
	p := orphanRig(t, "crash-at-call=1", 20*time.Millisecond, func(pid int) error {
		if kills++; kills > 500 {
			return unix.EPERM // an endless loop would only end with the test
		}
		environ, err := readEnviron(pid)
		if err != nil || len(environ) == 0 {
			return err // it has ended
		}
		next := exec.Command("sleep", "1000")
		next.Env, next.SysProcAttr = strings.Split(string(environ), "\x00"), &syscall.SysProcAttr{Setpgid: true}
		if err := next.Start(); err != nil {
			t.Error(err)
		}
		next.Process.Release()
		return unix.Kill(pid, unix.SIGKILL)
	}).open()
	_, err := callSlot(t, p, 0)
	remains(t, err, ".*killed, but there was no time to wait for its end")
}

// TestOrphanOfAnotherUser: the host may neither read the environment of a setuid program nor kill it.
func TestOrphanOfAnotherUser(t *testing.T) {
	r := orphanRig(t, "crash-at-call=1", 20*time.Millisecond, func(int) error { return unix.EPERM })
	r.reaper.environ = func(int) ([]byte, error) { return nil, &fs.PathError{Op: "open", Err: unix.EACCES} }
	p := r.open()
	_, err := callSlot(t, p, 0)
	remains(t, err, "kill: operation not permitted")
}

func TestLeftBy(t *testing.T) {
	c := &child{cmd: &exec.Cmd{Process: &os.Process{Pid: 10}}, socketDir: "/folder"}
	family.Lock()
	defer family.Unlock()
	family.plugins[20] = &child{}
	defer delete(family.plugins, 20)
	tests := []struct {
		name    string
		orphan  orphan
		environ string
		err     error
		want    bool
	}{
		{"its group", orphan{group: 10}, "", nil, true},
		{"its folder", orphan{group: 30}, "A=1\x00" + socketVariable + "=/folder\x00", nil, true},
		{"another folder", orphan{group: 30}, socketVariable + "=/folder2\x00", nil, false},
		{"it has just been reaped", orphan{group: 30}, "", unix.ESRCH, false},
		{"hidden", orphan{group: 30}, "", unix.EACCES, true},
		{"hidden, its group", orphan{group: 10}, "", unix.EPERM, true},
		{"hidden, ended", orphan{group: 30, zombie: true}, "", unix.EACCES, false},
		{"hidden, of another plugin", orphan{group: 20}, "", unix.EACCES, false},
		{"hidden, of the host", orphan{group: unix.Getpgrp()}, "", unix.EACCES, false},
	}
	for _, tt := range tests {
		r := reaper{environ: func(int) ([]byte, error) { return []byte(tt.environ), tt.err }}
		if got := r.leftBy(c, tt.orphan); got != tt.want {
			t.Errorf("%s: %t", tt.name, got)
		}
	}
}
