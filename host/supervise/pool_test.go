package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestCall(t *testing.T) {
	r := newRig(t, "ok")
	p := r.open()
	for slot := range 3 {
		req := request(slot)
		req.Instance = 1
		res, err := p.Call(t.Context(), req)
		if err != nil || len(res.Bad) != 0 || res.Busy != time.Microsecond {
			t.Fatalf("%+v, %v", res, err)
		}
		if got := r.Ring.Slot(slot)[17]; got != 2 {
			t.Errorf("slot %d holds %d", slot, got)
		}
	}
	req := request(0)
	req.Instance = 2
	if _, err := p.Call(t.Context(), req); err == nil || err.Error() != "plugin fake has no instance 2" {
		t.Errorf("an instance that does not exist: %v", err)
	}
	if err := p.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := callSlot(t, p, 0); !errors.Is(err, ErrClosed) {
		t.Errorf("a call behind Drain: %v", err)
	}
	if s := p.Stats(); s.Calls != 3 || s.Failed+s.Lost+s.Restarts != 0 || s.P50 <= 0 || s.P99 < s.P50 || s.Slowest < s.P50*15/16 {
		t.Errorf("%+v", s)
	}
}

func TestManyCallsInFlight(t *testing.T) {
	r := newRig(t, "slow=1ms")
	r.Workers = 2
	p := r.open()
	var mu sync.Mutex
	served := map[ProcessID]int{}
	var wg sync.WaitGroup
	for slot := range testSlots {
		wg.Go(func() {
			for range 25 {
				res, err := callSlot(t, p, slot)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				served[res.Process]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for slot := range testSlots {
		if got := r.Ring.Slot(slot)[4095]; got != 25 {
			t.Errorf("slot %d was worked on %d times, want 25", slot, got)
		}
	}
	if a, b := served[ProcessID{0, 0}], served[ProcessID{1, 0}]; a+b != 200 || min(a, b) < 60 {
		t.Errorf("the processes served %d and %d calls", a, b)
	}
}

func TestAnswersInAnyOrder(t *testing.T) {
	p := newRig(t, "swap").open()
	var wg sync.WaitGroup
	for slot := range 2 {
		wg.Go(func() {
			if _, err := callSlot(t, p, slot); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestAnswers(t *testing.T) {
	t.Run("bad row", func(t *testing.T) {
		res, err := callSlot(t, newRig(t, "bad-row").open(), 0)
		if err != nil || len(res.Bad) != 1 || res.Bad[0] != (BadRow{1, "it is silent"}) {
			t.Errorf("%+v, %v", res, err)
		}
	})
	t.Run("failure", func(t *testing.T) {
		p := newRig(t, "fail").open()
		for range 3 {
			_, err := callSlot(t, p, 0)
			if !errors.Is(err, ErrFailed) || err.Error() != "plugin fake: instance first: stage failed: no idea what to do" {
				t.Error(err)
			}
		}
		if s := p.Stats(); s.Failed != 3 || s.Restarts != 0 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("impossible time", func(t *testing.T) {
		res, err := callSlot(t, newRig(t, "lying-time").open(), 0)
		if err != nil || res.Busy > time.Minute {
			t.Errorf("%+v, %v", res, err)
		}
	})
}

func TestStartFailures(t *testing.T) {
	const stderr = "something terrible happened\n"
	tests := []struct {
		mode   string
		change func(r *rig)
		want   string
		exit   string
		hint   string
	}{
		{"crash-at-start", nil, "start: it ended before the handshake was done: exit status 3", "exit status 3", ""},
		{"garbage", nil, `start: it wrote "Hello from a chatty library" to its standard output in place of the handshake`, "signal: killed", stdoutHint},
		{"garbage-no-newline", nil, `start: it wrote "Hello" to its standard output in place of the handshake`, "exit status 0", stdoutHint},
		{"hang-at-start", func(r *rig) { r.StartTimeout = 300 * time.Millisecond }, "start: no handshake within 300ms", "signal: killed", ""},
		{"wrong-protocol", nil, "start: the program speaks protocol 7, this host 1", "signal: killed", ""},
		{"tcp", nil, "start: it listens on tcp 127.0.0.1:1, not on a unix socket in PLUGIN_UNIX_SOCKET_DIR", "signal: killed", ""},
		{"wrong-id", nil, "Info: the program says that it is other 0.1, its plugin.json says fake 1.0.0", "signal: killed", ""},
		{"refuse-configure", nil, "Configure: bucket 0 is too small for first", "signal: killed", ""},
		{"crash-at-configure", nil, "start: it ended before Configure was done: exit status 3", "exit status 3", ""},
		{"hang-at-configure", func(r *rig) { r.ConfigureTimeout = 300 * time.Millisecond }, "Configure: no answer within 300ms", "signal: killed", ""},
		{"ok", func(r *rig) {
			r.Plugin.Command = []string{filepath.Join(r.t.TempDir(), "script")}
			if err := os.WriteFile(r.Plugin.Command[0], []byte("not a program"), 0o700); err != nil {
				r.t.Fatal(err)
			}
		}, "start: fork/exec SCRIPT: exec format error", "", ""},
		{"ok", func(r *rig) { r.Plugin.Sum = strings.Repeat("0", 64) },
			"start: SCRIPT was changed since it was checked: sha256 SUM, plugin.sum says " + strings.Repeat("0", 64), "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			r := newRig(t, tt.mode)
			r.Workers = 2
			if tt.change != nil {
				tt.change(r)
			}
			e := r.refuse()
			got := strings.ReplaceAll(e.Err.Error(), r.Plugin.Command[0], "SCRIPT")
			if before, after, ok := strings.Cut(got, "sha256 "); ok {
				got = before + "sha256 SUM" + after[64:]
			}
			if got != tt.want || e.Exit != tt.exit || e.Hint() != tt.hint {
				t.Errorf("got  %q, exit %q, hint %q\nwant %q, exit %q, hint %q", got, e.Exit, e.Hint(), tt.want, tt.exit, tt.hint)
			}
			if strings.HasPrefix(tt.mode, "crash") != (e.LastStderr == stderr) {
				t.Errorf("last stderr %q", e.LastStderr)
			}
		})
	}
	t.Run("not startable", func(t *testing.T) {
		r := newRig(t, "ok")
		r.Plugin.State, r.Plugin.Reason = "modified", "plugin.sum:1: not a line of sha256sum"
		if _, err := NewPool(t.Context(), r.Config); err == nil ||
			err.Error() != "plugin fake: the catalog does not allow it to be started: modified plugin.sum:1: not a line of sha256sum" {
			t.Error(err)
		}
	})
	t.Run("context ends", func(t *testing.T) {
		r := newRig(t, "hang-at-start")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("interrupted"))
		defer cancel()
		_, err := NewPool(ctx, r.Config)
		if err == nil || err.Error() != "start plugin fake: interrupted" {
			t.Error(err)
		}
	})
}

func TestSurroundings(t *testing.T) {
	t.Setenv("CUDA_VISIBLE_DEVICES", "0,1,2,3")
	t.Setenv("HOST_SECRET", "leaks")
	t.Setenv("XTTS_PLUGIN_AUTHOR", "free")
	t.Setenv("GOMAXPROCS", "64")
	r := newRig(t, "environment")
	r.Configure.DeviceUuid, r.Threads = "GPU-1234", 3
	_, err := callSlot(t, r.open(), 0)
	if !errors.Is(err, ErrFailed) {
		t.Fatal(err)
	}
	var s surroundings
	_, text, _ := strings.Cut(err.Error(), "stage failed: ")
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for _, kv := range s.Env {
		key, value, _ := strings.Cut(kv, "=")
		env[key] = value
	}
	for key, want := range map[string]string{
		"CUDA_VISIBLE_DEVICES": "GPU-1234", "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "ORT_DISABLE_TELEMETRY": "1", "GOMAXPROCS": "3",
		"OMP_NUM_THREADS": "3", "XTTS_PLUGIN_THREADS": "3", "XTTS_PLUGIN_AUTHOR": "free", "PATH": os.Getenv("PATH"), "TMPDIR": r.tmp,
	} {
		if env[key] != want {
			t.Errorf("%s=%s, want %s", key, env[key], want)
		}
	}
	if _, ok := env["HOST_SECRET"]; ok {
		t.Error("the host's environment leaks")
	}
	if dir := env["PLUGIN_UNIX_SOCKET_DIR"]; !strings.HasPrefix(dir, r.tmp+"/xtts-host-") {
		t.Errorf("socket folder %s", dir)
	} else if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket folder %s is still there: %v", dir, err)
	}
	if s.Stdin != "/dev/null" || s.Dir != r.tmp {
		t.Errorf("standard input %s in %s", s.Stdin, s.Dir)
	}
	if s.Group == getpgrp() {
		t.Error("the plugin is in the host's process group")
	}
	if !slices.Contains(s.FDs, "3 /memfd:xtts-host-ring (deleted)") || !slices.ContainsFunc(s.FDs, func(fd string) bool { return strings.HasPrefix(fd, "4 pipe:") }) {
		t.Errorf("descriptors %q", s.FDs)
	}
}

func TestLog(t *testing.T) {
	r := newRig(t, "stderr")
	r.open()
	for _, want := range []string{`level=WARN msg="watch out" plugin=fake worker=0 answer=42`,
		`level=INFO msg="{\"@level\":\"info\",\"@message\":5}" plugin=fake worker=0`, `level=INFO msg="plain text" plugin=fake worker=0`} {
		eventually(t, want, func() bool { return strings.Contains(r.log.String(), want) })
	}
}

func TestFlood(t *testing.T) {
	r := newRig(t, "flood,crash-at-call=1")
	p := r.open()
	_, err := callSlot(t, p, 0)
	var e *PluginError
	if !errors.As(err, &e) || len(e.LastStderr) > tailSize || !strings.HasSuffix(e.LastStderr, "end of flood\nsomething terrible happened\n") {
		t.Errorf("%v with %d bytes of stderr", err, len(e.LastStderr))
	}
	if n := len(r.log.String()); n > 2<<20 {
		t.Errorf("a flood of 3 MB makes a log of %d bytes", n)
	}
}

func TestLostCalls(t *testing.T) {
	tests := []struct{ mode, want, exit string }{
		{"crash-at-call=3", "plugin process lost: it ended: exit status 3", "exit status 3"},
		{"hang-at-call=3", "plugin process lost: no result within 500ms", "signal: killed"},
	}
	for _, tt := range tests {
		t.Run(tt.mode, func(t *testing.T) {
			r := newRig(t, tt.mode+",slow=20ms")
			r.CallTimeout = 500 * time.Millisecond
			p := r.open()
			pid := p.PIDs()[0]
			for range 2 {
				if _, err := callSlot(t, p, 0); err != nil {
					t.Fatal(err)
				}
			}
			_, err := callSlot(t, p, 1)
			if alive(pid) {
				t.Error("the process is there when Call returns")
			}
			at := r.Ring.Slot(1)[0]
			time.Sleep(20 * time.Millisecond)
			if now := r.Ring.Slot(1)[0]; now != at {
				t.Error("something still writes to the slot")
			}
			var e *PluginError
			if !errors.Is(err, ErrLost) || !errors.As(err, &e) || e.Err.Error() != tt.want || e.Exit != tt.exit {
				t.Errorf("%v, exit %q", err, e.Exit)
			}
			if _, err := callSlot(t, p, 1); err != nil {
				t.Errorf("the next call: %v", err)
			}
			if s := p.Stats(); s.Lost != 1 || s.Restarts != 1 || s.Calls != 4 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestLossReachesAllCalls has a process die with several calls in flight, while another goes on.
func TestLossReachesAllCalls(t *testing.T) {
	r := newRig(t, "crash-at-call=4,slow=200ms")
	r.Workers = 2
	p := r.open()
	var mu sync.Mutex
	outcomes := map[string]int{}
	var wg sync.WaitGroup
	for slot := range 7 { // four for the first process, three for the second
		wg.Go(func() {
			res, err := callSlot(t, p, slot)
			mu.Lock()
			defer mu.Unlock()
			outcomes[fmt.Sprintf("worker %d lost %v", res.Process.Worker, errors.Is(err, ErrLost))]++
		})
	}
	wg.Wait()
	if outcomes["worker 0 lost true"] != 4 || outcomes["worker 1 lost false"] != 3 {
		t.Errorf("%v", outcomes)
	}
	for slot := range 7 {
		if _, err := callSlot(t, p, slot); err != nil && !errors.Is(err, ErrLost) {
			t.Error(err)
		}
	}
}

func TestLies(t *testing.T) {
	for mode, want := range map[string]string{
		"unknown-result": "plugin process lost: it sent a result for call 1001, which is not in flight",
		"end-stream":     "plugin process lost: it ended its stream",
		"lying-row":      "plugin process lost: it rejects row 99 of a batch of 4",
	} {
		t.Run(mode, func(t *testing.T) {
			_, err := callSlot(t, newRig(t, mode).open(), 0)
			var e *PluginError
			if !errors.As(err, &e) || e.Err.Error() != want || e.Exit != "signal: killed" {
				t.Errorf("%v, want %s", err, want)
			}
		})
	}
}

func TestCrashLoop(t *testing.T) {
	for _, mode := range []string{"crash-at-call=1", "crash-at-restart=FILE"} {
		t.Run(mode, func(t *testing.T) {
			r := newRig(t, strings.ReplaceAll(mode, "FILE", filepath.Join(t.TempDir(), "started")))
			r.Restart = RestartPolicy{Limit: 2, Backoff: 10 * time.Millisecond}
			p := r.open()
			p.Kick(ProcessID{}, "for a start")
			var err error
			for lost := 0; ; lost++ {
				if _, err = callSlot(t, p, 0); !errors.Is(err, ErrLost) {
					break
				}
				if lost > 3 {
					t.Fatal("it never gives up")
				}
			}
			var e *PluginError
			if !errors.Is(err, ErrCrashLoop) || !errors.As(err, &e) || e.Exit != "exit status 3" || e.LastStderr != "something terrible happened\n" {
				t.Errorf("%v", err)
			}
			if !strings.HasPrefix(err.Error(), "plugin fake: plugin keeps crashing: more than 2 restarts within 1m0s; the last time: ") ||
				!strings.HasSuffix(err.Error(), "\nits last lines on stderr:\n  something terrible happened") {
				t.Errorf("%v", err)
			}
			if s := p.Stats(); s.Restarts != 2 {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestKick(t *testing.T) {
	r := newRig(t, "ok")
	r.Workers = 2
	p := r.open()
	before := p.PIDs()
	res, err := callSlot(t, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	p.Kick(res.Process, "it wrote behind a tensor")
	if alive(before[0]) || !alive(before[1]) {
		t.Errorf("alive: %v %v, want false true", alive(before[0]), alive(before[1]))
	}
	eventually(t, "restart", func() bool { return len(p.PIDs()) == 2 })
	now := p.PIDs()
	p.Kick(res.Process, "again") // its generation is over
	if !slices.Equal(p.PIDs(), now) {
		t.Error("a process of another generation was killed")
	}
	p.KickAll("nobody knows who did it")
	if alive(now[0]) || alive(now[1]) {
		t.Error("KickAll returns before the end of the processes")
	}
	if res, err := callSlot(t, p, 0); err != nil || res.Process.Generation == 0 {
		t.Errorf("%+v, %v", res, err)
	}
	if !strings.Contains(r.log.String(), "plugin process lost: it wrote behind a tensor") {
		t.Errorf("the log does not give the reason:\n%s", r.log)
	}
}

func TestHealth(t *testing.T) {
	r := newRig(t, "ill")
	r.HealthInterval = 20 * time.Millisecond
	p := r.open()
	if _, err := callSlot(t, p, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "replacement", func() bool { return p.Stats().Restarts > 0 })
	if !strings.Contains(r.log.String(), "it says that it cannot work: the device is gone") {
		t.Errorf("the log does not give the reason:\n%s", r.log)
	}
}

func TestContextEndsDuringCall(t *testing.T) {
	t.Run("answered", func(t *testing.T) {
		p := newRig(t, "slow=200ms").open()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := p.Call(ctx, request(0)); err != nil {
			t.Errorf("a call under way: %v", err)
		}
		if _, err := p.Call(ctx, request(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a call behind the end: %v", err)
		}
	})
	t.Run("not answered", func(t *testing.T) {
		r := newRig(t, "hang-at-call=1")
		r.DrainTimeout = 200 * time.Millisecond
		p := r.open()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := p.Call(ctx, request(0)); !errors.Is(err, ErrLost) || !strings.Contains(err.Error(), "no result within 200ms") {
			t.Error(err)
		}
	})
	t.Run("no process", func(t *testing.T) {
		r := newRig(t, "crash-at-restart="+filepath.Join(t.TempDir(), "started"))
		r.Restart = RestartPolicy{Limit: 100, Backoff: time.Hour, MaxBackoff: time.Hour}
		p := r.open()
		p.Kick(ProcessID{}, "for a start")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := p.Call(ctx, request(0)); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestDrain(t *testing.T) {
	tests := []struct{ name, mode, want string }{
		{"calls in flight", "slow=200ms", ""},
		{"hangs when asked to drain", "hang-at-drain", "plugin fake: plugin process lost: asked to drain: context deadline exceeded"},
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
				t.Error("processes are left behind Drain")
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
	t.Run("a script's children", func(t *testing.T) {
		r := newRig(t, "ok")
		sh, err := exec.LookPath("sh")
		if err != nil {
			t.Fatal(err)
		}
		pids := filepath.Join(t.TempDir(), "pid")
		r.Plugin.Command = append([]string{sh, "-c", "sleep 1000 & echo $! >" + pids + `; exec "$@"`, "sh"}, r.Plugin.Command...)
		p := r.open()
		var pid int
		b, _ := os.ReadFile(pids)
		if _, err := fmt.Sscan(string(b), &pid); err != nil || !alive(pid) {
			t.Fatalf("no child %q: %v", b, err)
		}
		p.Close()
		eventually(t, "end of the child", func() bool { return !running(pid) })
	})
}

// TestHostIsKilled has a host die without a chance to do anything: its plugins must see it.
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
	if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

func BenchmarkCall(b *testing.B) {
	r := newRing(b)
	p, err := NewPool(b.Context(), fakeConfig("ok", b.TempDir(), r))
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	req := request(0)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Call(b.Context(), req); err != nil {
			b.Fatal(err)
		}
	}
}
