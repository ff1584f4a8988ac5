package supervise

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestKick(t *testing.T) {
	r := newRig(t, "ok")
	r.Workers = 2
	p := r.open()
	before := p.PIDs()
	res, err := callSlot(t, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Kick(res.Process, "it wrote after a tensor")
	if alive(before[0]) || !alive(before[1]) {
		t.Errorf("alive: %v %v, want false true", alive(before[0]), alive(before[1]))
	}
	eventually(t, "restart", func() bool { return len(p.PIDs()) == 2 })
	now := p.PIDs()
	p.Kick(res.Process, "again") // its generation has ended
	if !slices.Equal(p.PIDs(), now) {
		t.Error("a process of another generation was killed")
	}
	p.KickAll("an unknown process did it")
	if alive(now[0]) || alive(now[1]) {
		t.Error("KickAll returns before the end of the processes")
	}
	if res, err := callSlot(t, p, 0); err != nil || res.Process.Generation == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if !strings.Contains(r.log.String(), "plugin fake is restarted: it wrote after a tensor") {
		t.Errorf("the log does not give the reason:\n%s", r.log)
	}
}

// TestHealth: a process that cannot work is detected, also between calls.
func TestHealth(t *testing.T) {
	for mode, want := range map[string]string{
		"ill":            "it reports that it cannot work: the device is gone",
		"hang-at-health": "health check: no answer within 100ms",
	} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, mode)
			r.HealthInterval, r.HealthTimeout = 20*time.Millisecond, 100*time.Millisecond
			p := r.open()
			if _, err := callSlot(t, p, 0); err != nil {
				t.Fatal(err)
			}
			eventually(t, "replacement", func() bool { return p.Stats().Restarts > 0 })
			if !strings.Contains(r.log.String(), want) {
				t.Errorf("the log does not say %q:\n%s", want, r.log)
			}
		})
	}
}

func TestDrain(t *testing.T) {
	tests := []struct{ name, mode, want string }{
		{"calls in flight", "slow=200ms", ""},
		{"hangs when asked to drain", "hang-at-drain", "plugin fake: process lost: Drain: no answer within 300ms"},
		{"hangs at the end", "hang-at-end,ignores-lifeline", "plugin fake: it did not end within 300ms"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, tt.mode)
			r.Workers = 2
			if strings.HasPrefix(tt.mode, "hang") {
				r.DrainTimeout = 300 * time.Millisecond
			}
			p := r.open()
			var wg sync.WaitGroup
			if strings.HasPrefix(tt.mode, "slow") {
				for slot := range 4 {
					wg.Go(func() {
						if _, err := callSlot(t, p, slot); err != nil {
							t.Errorf("a call in flight: %v", err)
						}
					})
				}
				eventually(t, "calls", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.inFlight == 4 })
			}
			err := p.Drain(t.Context())
			wg.Wait()
			if tt.want == "" && err != nil {
				t.Error(err)
			}
			if tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
				t.Errorf("%v, want %s", err, tt.want)
			}
			if len(children(t)) > 0 {
				t.Error("processes remain after Drain")
			}
		})
	}
	t.Run("context ends", func(t *testing.T) {
		r := newRig(t, "hang-at-call=1")
		p := r.open()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := callSlot(t, p, 0); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		})
		eventually(t, "call", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.inFlight == 1 })
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := p.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		wg.Wait()
	})
}

func TestClose(t *testing.T) {
	t.Run("call in flight", func(t *testing.T) {
		p := newRig(t, "hang-at-call=1").open()
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := callSlot(t, p, 0); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		})
		eventually(t, "call", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.inFlight == 1 })
		for range 2 {
			wg.Go(func() { p.Close() })
		}
		wg.Wait()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if _, err := callSlot(t, p, 0); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	t.Run("during restarts", func(t *testing.T) {
		for i := range 8 {
			p := newRig(t, "ok").open()
			p.KickAll("for a start")
			time.Sleep(time.Duration(i) * 10 * time.Millisecond)
			p.Close()
		}
	})
}

// TestChildrenOfAPlugin: a child process of a script must not outlive the plugin, however the plugin ends.
func TestChildrenOfAPlugin(t *testing.T) {
	for mode, end := range map[string]func(*testing.T, *Pool){
		"ok": func(_ *testing.T, p *Pool) { p.Close() },
		"crash-at-call=1": func(t *testing.T, p *Pool) {
			if _, err := callSlot(t, p, 0); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		},
	} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, mode)
			sh, err := exec.LookPath("sh")
			if err != nil {
				t.Fatal(err)
			}
			pids := filepath.Join(t.TempDir(), "pid")
			r.Plugin.Command = append([]string{sh, "-c", "sleep 1000 & echo $! >" + pids + `; exec "$@"`, "sh"},
				r.Plugin.Command...)
			p := r.open()
			var pid int
			b, _ := os.ReadFile(pids)
			if _, err := fmt.Sscan(string(b), &pid); err != nil || !running(pid) {
				t.Fatalf("no child %q: %v", b, err)
			}
			end(t, p)
			eventually(t, "end of the child", func() bool { return !running(pid) })
		})
	}
}

// TestOrphans: processes that have left the plugin's group and lost their parent are ended with the plugin, and named.
// One with an environment of its own is not; when it ends, it is reaped.
func TestOrphans(t *testing.T) {
	for mode, end := range map[string]func(*testing.T, *Pool){
		"orphans": func(t *testing.T, p *Pool) {
			if err := p.Drain(t.Context()); err != nil {
				t.Error(err)
			}
		},
		"orphans,crash-at-call=1": func(t *testing.T, p *Pool) {
			if _, err := callSlot(t, p, 0); !errors.Is(err, ErrLost) {
				t.Error(err)
			}
		},
	} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, mode)
			r.MemoryInterval = 10 * time.Millisecond
			p := r.open()
			var pids []int
			for _, name := range []string{"marked", "unmarked"} {
				var pid int
				eventually(t, name, func() bool {
					b, _ := os.ReadFile(filepath.Join(r.tmp, name))
					_, err := fmt.Sscanln(string(b), &pid)
					return err == nil
				})
				pids = append(pids, pid)
				t.Cleanup(func() { p.Close(); os.Remove(filepath.Join(r.tmp, name)) })
			}
			if !running(pids[0]) || !running(pids[1]) {
				t.Error("an orphan of a plugin that runs was ended")
			}
			end(t, p)
			if running(pids[0]) || !running(pids[1]) {
				t.Errorf("running: %v %v, want false true", running(pids[0]), running(pids[1]))
			}
			unix.Kill(pids[1], unix.SIGKILL)
			eventually(t, "count", func() bool { return p.Stats().Orphans == 1 })
			want := fmt.Sprintf(
				`plugin fake: left processes in other groups, which were ended: (sleep|sh) \(process %d\)"`, pids[0])
			if !regexp.MustCompile(want).MatchString(r.log.String()) {
				t.Errorf("the log does not say %s:\n%s", want, r.log)
			}
			eventually(t, "end of the other", func() bool { reapZombies(); return state(pids[1]) == "" })
		})
	}
}

// TestHostIsKilled: the plugins of a host that is killed must end.
func TestHostIsKilled(t *testing.T) {
	tmp := t.TempDir()
	cmd := exec.Command(os.Args[0], "fake-host", tmp)
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var a, b int
	if _, err := fmt.Fscan(out, &a, &b); err != nil || !running(a) || !running(b) {
		t.Errorf("processes %d and %d: %v", a, b, err)
	}
	cmd.Process.Kill()
	cmd.Wait()
	eventually(t, "end of the plugins", func() bool { return !running(a) && !running(b) })
	t.Setenv("TMPDIR", tmp)
	Sweep() // as the next host does
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}
