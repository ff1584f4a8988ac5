package supervise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xtts-host/xtts-host/shared/ring"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// TestMain makes the test binary a plugin, or a host, if it is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake-plugin" {
		fakePlugin(os.Args[2])
	}
	if len(os.Args) > 2 && os.Args[1] == "fake-host" {
		fakeHost(os.Args[2])
	}
	os.Exit(m.Run())
}

// fake is a plugin that misbehaves on demand. It implements the protocol without the SDK. Its mode is a list of name or
// name=value, separated by commas.
type fake struct {
	stagepb.UnimplementedStageServer
	mode  map[string]string
	ring  *ring.Ring
	calls atomic.Int64

	mu   sync.Mutex
	held *stagepb.Result
}

// stderr is descriptor 2. go-plugin replaces the variable of package os, and output there just before the end would be
// lost.
var stderr = os.Stderr

func parseMode(text string) map[string]string {
	mode := map[string]string{}
	for _, m := range strings.Split(text, ",") {
		key, value, _ := strings.Cut(m, "=")
		mode[key] = value
	}
	return mode
}

func fakePlugin(text string) {
	f := &fake{mode: parseMode(text)}
	if f.is("garbage") {
		fmt.Println("Hello from a chatty library")
		time.Sleep(time.Hour)
	}
	if f.is("garbage-no-newline") {
		fmt.Print("Hello")
		os.Exit(0)
	}
	if path, ok := f.mode["crash-at-restart"]; ok {
		if _, err := os.Stat(path); err == nil {
			f.crash()
		}
		os.WriteFile(path, nil, 0o600)
	}
	switch {
	case f.is("crash-at-start"):
		f.crash()
	case f.is("hang-at-start"):
		time.Sleep(time.Hour)
	case f.is("stderr"):
		fmt.Fprintln(os.Stderr,
			`{"@level":"warn","@message":"watch out","@timestamp":"2026-01-02T03:04:05.000000Z","answer":42}`)
		fmt.Fprintln(os.Stderr, `{"@level":"info","@message":5}`)
		fmt.Fprintln(os.Stderr, "plain text")
	}
	if f.is("flood") {
		line := strings.Repeat("x", 99) + "\n"
		os.Stderr.WriteString(strings.Repeat(line, 20_000) + strings.Repeat("y", 1<<20) + "\nend of flood\n")
	}
	if f.is("orphans") {
		f.leave("marked", os.Environ())
		f.leave("unmarked", []string{"PATH=" + os.Getenv("PATH")})
	}
	versions := map[int]plugin.PluginSet{}
	for _, v := range strings.Split(cmp.Or(f.mode["protocols"], "1+2"), "+") {
		n, _ := strconv.Atoi(v)
		versions[n] = plugin.PluginSet{stage.PluginName: &fakeServer{fake: f}}
	}
	go func() { // the lifeline
		io.Copy(io.Discard, os.NewFile(stage.LifelineFD, "lifeline"))
		if f.is("ignores-lifeline") {
			return
		}
		os.Exit(0)
	}()
	if f.is("tcp") {
		fmt.Println("1|1|tcp|127.0.0.1:1|grpc")
		time.Sleep(time.Hour)
	}
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  stage.Handshake,
		Logger:           hclog.NewNullLogger(),
		VersionedPlugins: versions,
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(opts, grpc.MaxRecvMsgSize(stage.MaxMessage),
				grpc.MaxSendMsgSize(stage.MaxMessage))...)
		},
	})
	if f.is("hang-at-end") {
		time.Sleep(time.Hour)
	}
	os.Exit(0)
}

type fakeServer struct {
	plugin.NetRPCUnsupportedPlugin
	fake *fake
}

func (p *fakeServer) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	stagepb.RegisterStageServer(s, p.fake)
	return nil
}

func (p *fakeServer) GRPCClient(context.Context, *plugin.GRPCBroker, *grpc.ClientConn) (any, error) {
	return nil, errors.New("not a client")
}

func (f *fake) is(mode string) bool { _, ok := f.mode[mode]; return ok }

// leave starts a process in a session of its own, whose parent ends. Its id is in a file of that name. Only the first
// plugin process does so.
func (f *fake) leave(name string, env []string) {
	if _, err := os.Stat(name); err == nil {
		return
	}
	cmd := exec.Command("sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $! >"+name)
	cmd.Env, cmd.SysProcAttr = env, &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(stderr, err)
	}
}

func (f *fake) crash() {
	stderr.WriteString("something terrible happened\n")
	unix.Exit(3) // os.Exit prints a message in a binary built for coverage
}

func (f *fake) Info(context.Context, *stagepb.InfoRequest) (*stagepb.InfoResponse, error) {
	if f.is("hang-at-info") {
		time.Sleep(time.Hour)
	}
	if f.is("wrong-id") {
		return &stagepb.InfoResponse{Id: "other", Version: "0.1"}, nil
	}
	return &stagepb.InfoResponse{Id: "fake", Version: "1.0.0"}, nil
}

func (f *fake) Configure(_ context.Context, r *stagepb.ConfigureRequest) (*stagepb.ConfigureResponse, error) {
	switch {
	case f.is("refuse-configure"):
		return nil, fmt.Errorf("bucket 0 is too small for %s\nhint: take a larger one", r.Instances[0].Name)
	case f.is("refuse-value"):
		return nil, fmt.Errorf("instance %q: gain is 9", r.Instances[0].Name)
	case f.is("panic-at-configure"):
		return nil, status.Error(codes.Internal, "panic: boom (stage.go:7)")
	case f.is("crash-at-configure"):
		f.crash()
	case f.is("hang-at-configure"):
		time.Sleep(time.Hour)
	}
	return &stagepb.ConfigureResponse{}, nil
}

func (f *fake) Attach(_ context.Context, r *stagepb.AttachRequest) (*stagepb.AttachResponse, error) {
	var err error
	f.ring, err = ring.Attach(os.NewFile(stage.RingFD, "ring"), int(r.Slots), int(r.SlotSize))
	return &stagepb.AttachResponse{}, err
}

func (f *fake) Drain(context.Context, *stagepb.DrainRequest) (*stagepb.DrainResponse, error) {
	if f.is("hang-at-drain") {
		time.Sleep(time.Hour)
	}
	return &stagepb.DrainResponse{}, nil
}

func (f *fake) Health(context.Context, *stagepb.HealthRequest) (*stagepb.HealthResponse, error) {
	if f.is("hang-at-health") && f.calls.Load() > 0 {
		time.Sleep(time.Hour)
	}
	if f.is("ill") && f.calls.Load() > 0 {
		return &stagepb.HealthResponse{Message: "the device is gone"}, nil
	}
	return &stagepb.HealthResponse{Serving: true}, nil
}

func (f *fake) Process(s grpc.BidiStreamingServer[stagepb.Call, stagepb.Result]) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	defer wg.Wait()
	send := func(r *stagepb.Result) { mu.Lock(); defer mu.Unlock(); s.Send(r) }
	for {
		c, err := s.Recv()
		if err != nil {
			return nil
		}
		if f.is("end-stream") {
			return nil
		}
		wg.Go(func() {
			if r := f.work(c, send); r != nil {
				send(r)
			}
		})
	}
}

// work is the fake's work on a call: it adds the number of the instance plus one to every byte of the slot. Instances
// with special names misbehave.
func (f *fake) work(c *stagepb.Call, send func(*stagepb.Result)) *stagepb.Result {
	n := f.calls.Add(1)
	r := &stagepb.Result{Id: c.Id, Nanoseconds: 1000}
	if at, ok := f.mode["crash-at-call"]; ok && at == strconv.FormatInt(n, 10) {
		f.crash()
	}
	if path, ok := f.mode["crash-at-slot-2"]; ok {
		f.crashAtSlot2(path, n, c)
	}
	if at, ok := f.mode["hang-at-call"]; ok && at == strconv.FormatInt(n, 10) {
		// A hanging call that continues to write: only the end of the process stops it.
		for slot := f.ring.Slot(int(c.Slot)); ; time.Sleep(time.Millisecond) {
			slot[0]++
		}
	}
	if d, ok := f.mode["slow"]; ok {
		d, _ := time.ParseDuration(d)
		time.Sleep(d)
	}
	switch {
	case f.is("unknown-result"):
		r.Id += 1000
	case f.is("break-connection"):
		for fd := range 100 {
			unix.Shutdown(fd, unix.SHUT_RDWR) // those that are sockets
		}
	case f.is("lying-row"):
		r.BadRows = []*stagepb.BadRow{{Row: 99, Reason: "?"}}
	case f.is("lying-time"):
		r.Nanoseconds = int64(time.Hour)
	case f.is("fail"):
		r.Error = "no idea what to do"
	case f.is("bad-row"):
		r.BadRows = []*stagepb.BadRow{{Row: 1, Reason: "it is silent"}}
	case f.is("swap"): // answer in pairs, the second call first
		f.mu.Lock()
		held := f.held
		if held == nil {
			f.held = r
			f.mu.Unlock()
			return nil
		}
		f.held = nil
		f.mu.Unlock()
		send(r)
		return held
	case f.is("environment"):
		r.Error = f.surroundings()
	case f.is("tells"):
		r.Error = fmt.Sprintf("report %v, sources %v", c.Report, c.Sources)
	case f.is("draws"):
		r.Draws = fakeDraws[f.mode["draws"]]
	default:
		slot := f.ring.Slot(int(c.Slot))
		for i := range slot {
			slot[i] += byte(c.Instance) + 1
		}
	}
	return r
}

// crashAtSlot2 ends the process in a call for slot 2, the first process when it has four calls.
func (f *fake) crashAtSlot2(path string, n int64, c *stagepb.Call) {
	if _, err := os.Stat(path); err != nil { // the first process
		if n < 4 {
			select {}
		}
		os.WriteFile(path, nil, 0o600)
		f.crash()
	}
	if c.Slot == 2 {
		f.crash()
	}
}

// surroundings returns what the process got from the host, as JSON.
func (f *fake) surroundings() string {
	stdin, _ := os.Readlink("/proc/self/fd/0")
	dir, _ := os.Getwd()
	var fds []string
	names, _ := filepath.Glob("/proc/self/fd/*")
	for _, n := range names {
		if to, err := os.Readlink(n); err == nil {
			fds = append(fds, filepath.Base(n)+" "+to)
		}
	}
	b, _ := json.Marshal(surroundings{Env: os.Environ(), Stdin: stdin, Dir: dir, FDs: fds, Group: getpgrp()})
	return string(b)
}

type surroundings struct {
	Env        []string
	Stdin, Dir string
	FDs        []string
	Group      int
}
