package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/xtts-host/xtts-host/host/base/socketdir"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/manifest"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// launch starts a process and prepares it to accept calls. The end of ctx ends the launch, not the process.
func launch(ctx context.Context, cfg *Config, id ProcessID) (*process, error) {
	log := cfg.Logger.With("plugin", cfg.Plugin.Name(), "worker", id.Worker)
	p := &process{
		id: id, cfg: cfg, journal: newJournal(log, cfg.Logger, cfg.Plugin.Name()), gone: make(chan struct{}),
		pending: map[uint64]*call{},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.busy = 1 // while it starts
	if err := p.start(ctx); err != nil {
		return nil, p.abort(ctx, err)
	}
	p.idle()
	return p, nil
}

// errOther means that the program does not match its plugin.json, errOlder that its protocol does not.
var (
	errOther = errors.New("another program")
	errOlder = errors.New("an older protocol")
)

// served reports whether this host has the version of the protocol in a handshake line.
func served(version string) bool {
	v, err := strconv.Atoi(version)
	return err == nil && stage.FirstProtocol <= v && v <= stage.LastProtocol
}

// launchFirst starts the first process of a worker. The user must fix what a plugin refuses. But a process that is
// killed from outside, or does not answer, gets one more attempt, as later in the run.
func (p *Pool) launchFirst(ctx context.Context, w *worker) (*process, error) {
	id := ProcessID{Worker: w.index}
	proc, err := launch(ctx, &p.cfg, id)
	if !errors.Is(err, ErrLost) || ctx.Err() != nil {
		return proc, err
	}
	p.log(w, err, 0)
	p.update(func() { p.stats.Restarts++ })
	id.Generation++
	return launch(ctx, &p.cfg, id)
}

// phaseError is a failed step of the start.
type phaseError struct {
	phase string // empty: before the handshake
	err   error
}

func (e *phaseError) Error() string { return e.phase + ": " + e.err.Error() }
func (e *phaseError) Unwrap() error { return e.err }

func (p *process) start(ctx context.Context) error {
	// The folder of the socket is needed until the connection is open. It is removed then, so nothing remains if either
	// side is killed.
	dir, err := socketdir.New(longestSocket)
	if err != nil {
		return &phaseError{"make the socket's folder", err}
	}
	defer dir.Remove()
	if p.cfg.confined() {
		if p.temp, err = newTempDir(); err != nil {
			return &phaseError{"make the folder for temporary files", err}
		}
	}
	read, write, err := os.Pipe()
	if err != nil {
		return &phaseError{"make the lifeline", err}
	}
	defer read.Close()
	p.lifeline = write

	p.prepare(read, dir.Path)
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
	if p.protocol = p.client.NegotiatedVersion(); p.protocol < p.cfg.Plugin.Manifest.Protocol {
		return &phaseError{"start", errOlder}
	}
	if err := p.configure(ctx, max(p.cfg.StartTimeout-time.Since(began), time.Second)); err != nil {
		return err
	}
	if p.stream, err = p.stage.Process(p.ctx); err != nil {
		return &phaseError{"Process", err}
	}
	p.began, p.cpu = time.Now(), cpuOf(p.child.cmd.Process.Pid)
	return nil
}

// prepare makes what starts the program. lifeline is its end of the lifeline, sockets the folder for its socket.
func (p *process) prepare(lifeline *os.File, sockets string) {
	command := p.cfg.Plugin.Command
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = p.cfg.Plugin.Dir
	cmd.ExtraFiles = []*os.File{stage.RingFD - 3: p.cfg.Ring.File(), stage.LifelineFD - 3: lifeline}
	p.child = newChild(cmd, p.cfg.Plugin.Sum, p.journal, p.cancel)
	p.child.onStart = func() { p.reached(Start) }
	p.child.reaper = p.cfg.reaper
	p.client = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  stage.Handshake,
		VersionedPlugins: stage.PluginSets(),
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		StartTimeout:     p.cfg.StartTimeout,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: sockets},
		RunnerFunc: func(_ hclog.Logger, vars *exec.Cmd, socketDir string) (runner.Runner, error) {
			env := environment(os.Environ(), p.cfg.Configure.GetDeviceUuid(), p.cfg.ORTLibrary)
			cmd.Env = append(p.temp.inTemp(env), vars.Env...)
			p.child.socketDir = socketDir
			return p.child, p.confine(cmd, socketDir)
		},
		Logger:     hclog.NewNullLogger(), // its message is reported here, once
		SyncStdout: p.journal.writer(),
		SyncStderr: p.journal.writer(),
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithIdleTimeout(0), // an idle connection would be closed, and its socket no longer exists
			grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(stage.MaxMessage),
				grpc.MaxCallSendMsgSize(stage.MaxMessage)),
		},
	})
}

// configure introduces host and plugin to each other. limit is what the start has left for the first answer.
func (p *process) configure(ctx context.Context, limit time.Duration) error {
	p.reached(Handshake)
	var info *stagepb.InfoResponse
	if err := p.step(ctx, "Info", limit, func(ctx context.Context) (err error) {
		info, err = p.stage.Info(ctx, &stagepb.InfoRequest{})
		return err
	}); err != nil {
		return err
	}
	if m := p.cfg.Plugin.Manifest; info.Id != m.ID || info.Version != m.Version {
		return &phaseError{"Info", fmt.Errorf("%w: it reports %s %s, but plugin.json has %s %s", errOther, info.Id,
			info.Version, m.ID, m.Version)}
	}
	p.reached(Configure)
	if err := p.step(ctx, "Configure", p.cfg.ConfigureTimeout, func(ctx context.Context) error {
		_, err := p.stage.Configure(ctx, p.cfg.Configure)
		return err
	}); err != nil {
		return err
	}
	p.reached(Attach)
	return p.step(ctx, "Attach", p.cfg.ConfigureTimeout, func(ctx context.Context) error {
		_, err := p.stage.Attach(ctx,
			&stagepb.AttachRequest{Slots: uint32(p.cfg.Ring.Slots()), SlotSize: uint64(p.cfg.Ring.SlotSize())})
		return err
	})
}

// longestSocket is the length of the longest path of a socket in its folder: go-plugin makes a folder and a file whose
// names end in random numbers of at most 10 digits.
const longestSocket = len("/plugin-dir1234567890") + len("/plugin1234567890")

// step makes one call of the start with its timeout.
func (p *process) step(ctx context.Context, phase string, limit time.Duration, call func(context.Context) error) error {
	if err := p.cfg.awake.within(ctx, limit, call); err != nil {
		return &phaseError{phase, err}
	}
	return nil
}

// exitDelay is how long a process whose connection broke has to exit, so that its exit status can be reported.
const exitDelay = time.Second

// abort ends a process whose start failed, and returns the error.
func (p *process) abort(ctx context.Context, err error) error {
	if p.child == nil { // not even attempted
		p.cancel()
		if p.lifeline != nil {
			p.lifeline.Close()
		}
		p.temp.remove()
		return &PluginError{Plugin: p.cfg.Plugin.Name(), Err: fmt.Errorf("start: %w", err), hint: hint.Of(err)}
	}
	started := p.child.ID() != ""
	if started && status.Code(errors.Unwrap(err)) == codes.Unavailable {
		p.awaitExit(exitDelay)
	}
	p.child.kill()
	if !started {
		p.release()
	} else if err := p.ended(killTimeout); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("start plugin %s: %w", p.cfg.Plugin.Name(), context.Cause(ctx))
	}
	return p.startError(err, started)
}

const stdoutHint = "write nothing to the standard output before the handshake: docs/plugin-protocol.md, Process"

func (p *process) startError(err error, started bool) error {
	e := &PluginError{
		Plugin: p.cfg.Plugin.Name(), LastStderr: p.journal.last(), hint: startHint,
	}
	var byItself bool
	if started {
		e.allowed = p.cfg.allowed()
		e.Exit, byItself = p.child.exit()
	}
	var phase *phaseError
	errors.As(err, &phase)
	text := p.child.handshake.text()
	fields := strings.Split(text, "|")
	switch {
	case !started:
		e.Err, e.hint = fmt.Errorf("start: %w", phase.err), cmp.Or(hint.Of(phase.err), e.hint)
		switch {
		case errors.Is(phase.err, syscall.EMFILE):
			e.hint = filesHint
		case errors.Is(phase.err, syscall.EAGAIN):
			e.hint = processesHint
		case errors.Is(phase.err, syscall.ETXTBSY):
			e.hint = busyHint
		}
	case phase.phase == "" && len(fields) >= 5 && !served(fields[1]):
		e.Err = fmt.Errorf("start: the program uses protocol %s, but this host has %s", visible.Short(fields[1], 20),
			stage.Protocols)
		e.hint = protocolHint
	case phase.phase == "" && text != "" && len(fields) < 4:
		e.Err = fmt.Errorf("start: it wrote \"%s\" to its standard output instead of the handshake",
			visible.Short(text, 200))
		e.LastStderr = "" // it may contain a handshake line that came too late
		e.hint = stdoutHint
	case byItself:
		where := phase.phase
		if where == "" {
			where = "the handshake"
		}
		e.lost = p.child.wasKilled()
		e.Err = fmt.Errorf("start: it ended before %s was done: %s", where, e.Exit)
	case phase.phase == "" && text == "":
		e.lost = true
		e.Err = fmt.Errorf("start: no handshake within %v", p.cfg.StartTimeout)
		if e.hint = startLateHint; p.journal.fatal() { // it only has not exited
			e.hint = startHint
		}
	case phase.phase == "":
		e.Err = fmt.Errorf("start: %w", phase.err)
		e.hint = rulesHint
	case errors.Is(phase.err, errLate):
		e.lost = true
		e.Err, e.hint = fmt.Errorf("%s: %w", phase.phase, phase.err), startLateHint
	case errors.Is(phase.err, errOlder):
		e.Err = fmt.Errorf("start: the program uses protocol %d, but plugin.json says that it needs %d", p.protocol,
			p.cfg.Plugin.Manifest.Protocol)
		e.hint = olderHint
	case errors.Is(phase.err, errOther):
		e.Err, e.hint = fmt.Errorf("%s: %w", phase.phase, phase.err), versionHint
	default:
		answer := status.Convert(phase.err)
		message, hint := e.splitHint(answer.Message())
		e.Err, e.hint = fmt.Errorf("%s: %s", phase.phase, message),
			cmp.Or(hint, p.adviceFor(phase.phase, answer.Code(), message))
	}
	return e
}

// adviceFor is the hint for a step of the start that the plugin refused without a hint of its own. A refused
// configuration is explained by the keys of the stage that the message names, or of the only one.
func (p *process) adviceFor(phase string, code codes.Code, message string) string {
	switch {
	case code == codes.Internal: // a panic
		return crashHint
	case phase != "Configure":
		return rulesHint
	}
	file, instances := filepath.Join(p.cfg.Plugin.Dir, manifest.PluginFile), p.cfg.Configure.Instances
	for _, i := range instances {
		s, ok := p.cfg.Plugin.Manifest.Stage(i.Stage)
		if ok && (len(instances) == 1 || strings.Contains(message, strconv.Quote(i.Name))) {
			if s.Config == nil {
				return "correct what it names, or leave stage " + s.Name + " out of the pipeline"
			}
			return s.ConfigKeys() + " (" + file + ")"
		}
	}
	return "the config of each stage in " + file + " says what it takes"
}
