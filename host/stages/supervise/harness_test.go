package supervise

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

const testSlots = 8

func getpgrp() int { return unix.Getpgrp() }

// fakeConfig describes a pool of one fake plugin. Timeouts are short to keep the tests fast.
func fakeConfig(mode, dir string, r *ring.Ring) Config {
	return Config{
		Plugin: catalog.Entry{
			Dir: dir, State: catalog.Unverified, Command: []string{os.Args[0], "fake-plugin", mode},
			Manifest: &manifest.Plugin{ID: "fake", Version: "1.0.0"},
		},
		Ring: r,
		Configure: &stagepb.ConfigureRequest{Instances: []*stagepb.Instance{
			{Name: "first", Stage: "add"}, {Name: "second", Stage: "add"}}},
		StartTimeout: 20 * time.Second,
		CallTimeout:  20 * time.Second,
	}
}

// rig is a config with everything that a test inspects afterwards.
type rig struct {
	Config
	t   *testing.T
	tmp string
	log *logBuffer
}

// marks returns a folder in which fakes may write.
func marks(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	t.Setenv("XTTS_PLUGIN_TEST_MARKS", folder)
	return folder
}

type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}
func (l *logBuffer) String() string { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// newRig returns a rig. When the test ends, no process, goroutine, file or descriptor may remain.
func newRig(t *testing.T, mode string) *rig {
	t.Helper()
	tmp, err := os.MkdirTemp("", "rig")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", tmp)
	t.Setenv("XTTS_PLUGIN_TEST_FOLDER", tmp) // fakes leave files there
	t.Setenv("XTTS_PLUGIN_TEST_PROGRAM", os.Args[0])
	starter() // its goroutine lives on
	goroutines, fds := runtime.NumGoroutine(), openFiles(t)
	r, err := ring.Create(testSlots, 4096)
	if err != nil {
		t.Fatal(err)
	}
	log := &logBuffer{}
	cfg := fakeConfig(mode, tmp, r)
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: trace}))
	t.Cleanup(func() {
		r.Close()
		if got := children(t); len(got) > 0 {
			t.Errorf("processes are left: %v", got)
		}
		eventually(t, "goroutines", func() bool { return runtime.NumGoroutine() <= goroutines })
		if n := runtime.NumGoroutine(); n > goroutines {
			buf := make([]byte, 1<<20)
			t.Errorf("%d goroutines, %d before:\n%s", n, goroutines, buf[:runtime.Stack(buf, true)])
		}
		eventually(t, "descriptors", func() bool { return len(openFiles(t)) <= len(fds) })
		if now := openFiles(t); len(now) > len(fds) {
			t.Errorf("descriptors: %q, before %q", now, fds)
		}
		if left, _ := filepath.Glob(filepath.Join(tmp, "*")); len(left) > 0 {
			t.Errorf("files are left: %v", left)
		}
		os.RemoveAll(tmp)
	})
	return &rig{Config: cfg, t: t, tmp: tmp, log: log}
}

// open starts a pool that is closed with the test.
func (r *rig) open() *Pool {
	r.t.Helper()
	p, err := NewPool(r.t.Context(), r.Config)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { p.Close() })
	return p
}

// refuse starts a pool that must not start, and returns the error.
func (r *rig) refuse() *PluginError {
	r.t.Helper()
	p, err := NewPool(r.t.Context(), r.Config)
	if err == nil {
		p.Close()
		r.t.Fatal("the pool starts")
	}
	var e *PluginError
	if !errors.As(err, &e) {
		r.t.Fatalf("no PluginError: %v", err)
	}
	return e
}

// request is a batch of four rows.
func request(slot int) Request { return Request{Slot: slot, RowKeys: make([]byte, 64)} }

func callSlot(t *testing.T, p *Pool, slot int) (Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return p.Call(ctx, request(slot))
}

// children returns the processes that the test binary has started, from /proc.
func children(t *testing.T) []int {
	t.Helper()
	var all []int
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has just ended
		}
		// pid (comm) state ppid: comm may contain anything, so parse after the last parenthesis.
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if fields[1] == strconv.Itoa(os.Getpid()) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			all = append(all, pid)
		}
	}
	return all
}

func openFiles(t *testing.T) []string {
	t.Helper()
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		to, _ := os.Readlink(name) // the folder itself is open no more
		names[i] += " " + to
	}
	return names
}

// eventually waits for a condition, for goroutines of gRPC and go-plugin that end asynchronously.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Errorf("%s: not in time", what)
			return
		}
	}
}

// alive reports whether the process exists, even as a zombie; running reports whether it runs. They differ for a
// process whose parent has ended and that no one may ever reap.
func alive(pid int) bool { return unix.Kill(pid, 0) == nil }

func running(pid int) bool {
	s := state(pid)
	return s != "" && s != "Z"
}

// state returns the state of a process from /proc/PID/stat, or "" if there is none.
func state(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))[0]
}

func newRing(t testing.TB) *ring.Ring {
	t.Helper()
	r, err := ring.Create(testSlots, 4096)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// fakeHost is a host with two plugin processes that never ends by itself.
func fakeHost(dir string) {
	r, err := ring.Create(testSlots, 4096)
	if err != nil {
		panic(err)
	}
	cfg := fakeConfig("ok,ignores-lifeline", dir, r) // the kernel ends it
	cfg.Workers = 2
	p, err := NewPool(context.Background(), cfg)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.PIDs()[0], p.PIDs()[1])
	select {}
}
