package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// ProcessID names one process of a pool: the worker, and how many processes that worker had before.
type ProcessID struct{ Worker, Generation int }

// process is one running plugin process, from launch until it has been reaped. It is never started again.
type process struct {
	id      ProcessID
	cfg     *Config
	journal *journal

	child    *child
	lifeline *os.File // the host's end
	client   *plugin.Client
	conn     plugin.ClientProtocol
	stage    stagepb.StageClient
	stream   grpc.BidiStreamingClient[stagepb.Call, stagepb.Result]
	ctx      context.Context // ends with the process
	cancel   context.CancelFunc
	gone     chan struct{} // closed when it has been reaped and its calls have returned

	sendMu sync.Mutex // one Send at a time

	mu      sync.Mutex // guards the rest
	pending map[uint64]*call
	lastID  uint64
	retired bool   // accepts no more calls
	reason  string // why the host killed it
}

// launch starts a process and brings it to the point where it takes calls. The end of ctx ends a launch under
// way, not the process.
func launch(ctx context.Context, cfg *Config, id ProcessID) (*process, error) {
	log := cfg.Logger.With("plugin", cfg.Plugin.Name(), "worker", id.Worker)
	p := &process{id: id, cfg: cfg, journal: newJournal(log), gone: make(chan struct{}), pending: map[uint64]*call{}}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	if err := p.start(ctx); err != nil {
		return nil, p.abort(ctx, err)
	}
	return p, nil
}

// phaseError is a failed step of the start.
type phaseError struct {
	phase string // empty: up to the handshake
	err   error
}

func (e *phaseError) Error() string { return e.phase + ": " + e.err.Error() }
func (e *phaseError) Unwrap() error { return e.err }

func (p *process) start(ctx context.Context) error {
	// The socket's folder is needed until the connection stands. Removing it then means that nothing is left behind,
	// whichever side is killed.
	dir, err := os.MkdirTemp(socketRoot(os.TempDir()), "xtts-host-")
	if err != nil {
		return &phaseError{"make the socket's folder", err}
	}
	defer os.RemoveAll(dir)
	read, write, err := os.Pipe()
	if err != nil {
		return &phaseError{"make the lifeline", err}
	}
	defer read.Close()
	p.lifeline = write

	command := p.cfg.Plugin.Command
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = p.cfg.Plugin.Dir
	cmd.ExtraFiles = []*os.File{stage.RingFD - 3: p.cfg.Ring.File(), stage.LifelineFD - 3: read}
	p.child = newChild(cmd, p.cfg.Plugin.Sum, p.journal, p.cancel)
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  stage.Handshake,
		Plugins:          stage.PluginSet(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		StartTimeout:     p.cfg.StartTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: dir},
		RunnerFunc: func(_ hclog.Logger, vars *exec.Cmd, socketDir string) (runner.Runner, error) {
			cmd.Env = append(environment(os.Environ(), p.cfg.Configure.GetDeviceUuid(), p.cfg.Threads), vars.Env...)
			p.child.socketDir = socketDir
			return p.child, nil
		},
		Logger:     hclog.NewNullLogger(), // what it would say is said here, once
		SyncStdout: p.journal.writer(),
		SyncStderr: p.journal.writer(),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithIdleTimeout(0), // an idle connection would be closed, and its socket is gone
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(stage.MaxMessage), grpc.MaxCallSendMsgSize(stage.MaxMessage)),
		},
	})
	defer context.AfterFunc(ctx, p.child.kill)()
	began := time.Now()
	if p.conn, err = p.client.Client(); err != nil {
		return &phaseError{"", err}
	}
	raw, err := p.conn.Dispense(stage.PluginName)
	if err != nil {
		return &phaseError{"", err}
	}
	p.stage = raw.(stagepb.StageClient)

	var info *stagepb.InfoResponse
	if err := p.step(ctx, "Info", max(p.cfg.StartTimeout-time.Since(began), time.Second), func(ctx context.Context) (err error) {
		info, err = p.stage.Info(ctx, &stagepb.InfoRequest{})
		return err
	}); err != nil {
		return err
	}
	if m := p.cfg.Plugin.Manifest; info.Id != m.ID || info.Version != m.Version {
		return &phaseError{"Info", fmt.Errorf("the program says that it is %s %s, its plugin.json says %s %s", info.Id, info.Version, m.ID, m.Version)}
	}
	if err := p.step(ctx, "Configure", p.cfg.ConfigureTimeout, func(ctx context.Context) error {
		_, err := p.stage.Configure(ctx, p.cfg.Configure)
		return err
	}); err != nil {
		return err
	}
	if err := p.step(ctx, "Attach", p.cfg.ConfigureTimeout, func(ctx context.Context) error {
		_, err := p.stage.Attach(ctx, &stagepb.AttachRequest{Slots: uint32(p.cfg.Ring.Slots()), SlotSize: uint64(p.cfg.Ring.SlotSize())})
		return err
	}); err != nil {
		return err
	}
	if p.stream, err = p.stage.Process(p.ctx); err != nil {
		return &phaseError{"Process", err}
	}
	return nil
}

// socketRoot returns the folder for sockets: a socket's path has at most 107 bytes (unix(7)), of which up to 60 come
// below.
func socketRoot(tmp string) string {
	if len(tmp) > 107-60 {
		return "/tmp"
	}
	return tmp
}

// step makes one call of the start within its time.
func (p *process) step(ctx context.Context, phase string, limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := call(ctx)
	// The plugin's side of the connection knows the deadline, too, and may be the first to say so.
	if err != nil && (ctx.Err() == context.DeadlineExceeded || status.Code(err) == codes.DeadlineExceeded) {
		err = fmt.Errorf("no answer within %v", limit)
	}
	if err != nil {
		return &phaseError{phase, err}
	}
	return nil
}

// exitDelay is how long a process whose connection broke has to end by itself, so that its own exit status can be told.
const exitDelay = time.Second

// abort ends a process whose start failed, and words why.
func (p *process) abort(ctx context.Context, err error) error {
	if p.child == nil { // not even tried
		p.cancel()
		if p.lifeline != nil {
			p.lifeline.Close()
		}
		return &PluginError{Plugin: p.cfg.Plugin.Name(), Err: fmt.Errorf("start: %w", err)}
	}
	started := p.child.ID() != ""
	if started && status.Code(errors.Unwrap(err)) == codes.Unavailable {
		p.awaitExit(exitDelay)
	}
	p.child.kill()
	if started && !p.awaitExit(killTimeout) {
		return p.stuck()
	}
	p.release()
	if ctx.Err() != nil {
		return fmt.Errorf("start plugin %s: %w", p.cfg.Plugin.Name(), context.Cause(ctx))
	}
	return p.startError(err, started)
}

const stdoutHint = "nothing may write to the standard output before the handshake: docs/plugin-protocol.md, Process"

func (p *process) startError(err error, started bool) error {
	e := &PluginError{Plugin: p.cfg.Plugin.Name(), LastStderr: p.journal.last()}
	var byItself bool
	if started {
		e.Exit, byItself = p.child.exit()
	}
	var phase *phaseError
	errors.As(err, &phase)
	text := p.child.handshake.text()
	fields := strings.Split(text, "|")
	switch {
	case !started:
		e.Err = fmt.Errorf("start: %w", phase.err)
	case phase.phase == "" && len(fields) >= 5 && fields[1] != strconv.Itoa(stage.Protocol):
		e.Err = fmt.Errorf("start: the program speaks protocol %s, this host %d", fields[1], stage.Protocol)
	case phase.phase == "" && text != "" && len(fields) < 4:
		e.Err = fmt.Errorf("start: it wrote %q to its standard output in place of the handshake", shorten(text, 200))
		e.hint = stdoutHint
	case byItself:
		where := phase.phase
		if where == "" {
			where = "the handshake"
		}
		e.Err = fmt.Errorf("start: it ended before %s was done: %s", where, e.Exit)
	case phase.phase == "" && text == "":
		e.Err = fmt.Errorf("start: no handshake within %v", p.cfg.StartTimeout)
	case phase.phase == "":
		e.Err = fmt.Errorf("start: %w", phase.err)
	default:
		e.Err = fmt.Errorf("%s: %s", phase.phase, status.Convert(phase.err).Message())
	}
	return e
}

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}

// serve takes in results until the stream ends, and says why it ended: nil when the plugin closed it.
func (p *process) serve() error {
	var watch sync.WaitGroup
	watch.Go(p.watch)
	defer watch.Wait()
	defer p.cancel()
	for {
		r, err := p.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := p.deliver(r); err != nil {
			p.kill(err.Error())
			return err
		}
	}
}

// watch asks after the process's health until it ends.
func (p *process) watch() {
	t := time.NewTicker(p.cfg.HealthInterval)
	defer t.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-t.C:
		}
		ctx, cancel := context.WithTimeout(p.ctx, healthTimeout)
		h, err := p.stage.Health(ctx, &stagepb.HealthRequest{})
		cancel()
		switch {
		case p.ctx.Err() != nil:
			return
		case err != nil:
			p.kill(fmt.Sprintf("asked after its health: %s", status.Convert(err).Message()))
		case !h.Serving:
			p.kill("it says that it cannot work: " + h.Message)
		}
	}
}

// kill ends the process for a reason; the first one counts. It does not wait: gone tells when it is over.
func (p *process) kill(reason string) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason = reason
	}
	p.mu.Unlock()
	p.child.kill()
}

// killTimeout is how long a killed process may take to end. Only one that hangs in the kernel takes longer.
const killTimeout = 10 * time.Second

func (p *process) awaitExit(limit time.Duration) bool {
	t := time.NewTimer(limit)
	defer t.Stop()
	select {
	case <-p.child.done:
		return true
	case <-t.C:
		return false
	}
}

// release frees what is left of a process that has been reaped.
func (p *process) release() {
	p.cancel()
	p.client.Kill() // ends go-plugin's goroutines and the connection
	p.lifeline.Close()
}

// retire kills what is left of a process whose stream has ended, and returns when it has exited: only then do its
// calls return.
func (p *process) retire(err error) error {
	p.awaitExit(exitDelay) // a crash breaks the stream a moment before it is an exit
	p.child.kill()
	if !p.awaitExit(killTimeout) {
		stuck := p.stuck()
		p.lose(stuck)
		return stuck
	}
	why := p.why(err)
	p.release()
	lost := &PluginError{Plugin: p.cfg.Plugin.Name(), LastStderr: p.journal.last(), Err: fmt.Errorf("%w: %s", ErrLost, why)}
	lost.Exit, _ = p.child.exit()
	p.lose(lost)
	return lost
}

func (p *process) stuck() *PluginError {
	return &PluginError{Plugin: p.cfg.Plugin.Name(), LastStderr: p.journal.last(),
		Err:  fmt.Errorf("process %s did not end within %v of being killed", p.child.ID(), killTimeout),
		hint: "the kernel waits for a device or a file system: see dmesg"}
}

// finish ends a process that has answered everything: it is asked first, then killed when the time is over.
func (p *process) finish(limit time.Duration) error {
	timer := time.AfterFunc(limit, func() { p.kill(fmt.Sprintf("it did not end within %v", limit)) })
	p.conn.Close()     // GRPCController.Shutdown
	p.lifeline.Close() // for plugins without one
	exited := p.awaitExit(limit + killTimeout)
	timer.Stop()
	if !exited {
		return p.stuck()
	}
	p.release()
	if how, byItself := p.child.exit(); !byItself {
		return &PluginError{Plugin: p.cfg.Plugin.Name(), Exit: how, LastStderr: p.journal.last(), Err: errors.New(p.why(nil))}
	}
	return nil
}

// why says why the process is gone: the host's reason, its own end, or what the stream said.
func (p *process) why(err error) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	how, byItself := p.child.exit()
	switch {
	case p.reason != "":
		return p.reason
	case byItself:
		return "it ended: " + how
	case err != nil:
		return status.Convert(err).Message()
	}
	return "it ended its stream"
}

// drain asks the plugin to finish, then closes the stream; serve ends when the plugin has, too.
func (p *process) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.DrainTimeout)
	defer cancel()
	if _, err := p.stage.Drain(ctx, &stagepb.DrainRequest{}); err != nil {
		p.kill("asked to drain: " + status.Convert(err).Message())
		return
	}
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	p.stream.CloseSend()
}
