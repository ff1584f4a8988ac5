package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// ProcessID identifies one process of a pool: the worker, and the number of processes that the worker had before.
type ProcessID struct{ Worker, Generation int }

// link is what connects the host to a process.
type link struct {
	child    *child
	lifeline *os.File // the host's end of the lifeline
	client   *plugin.Client
	conn     plugin.ClientProtocol
	stage    stagepb.StageClient
	protocol int        // that both sides have
	sendMu   sync.Mutex // one Send at a time
	stream   grpc.BidiStreamingClient[stagepb.Call, stagepb.Result]
}

// record is what a process did, and why it ended.
type record struct {
	reason   string // why the host killed it
	hint     string // the hint for the reason
	kicked   bool   // because of what it wrote
	violated bool   // because of what it sent
	served   int    // number of batches that it finished
	began    time.Time
	serving  time.Duration // from began to its end
}

// process is one running plugin process, from its launch until it has been reaped. It is never restarted.
type process struct {
	link
	id      ProcessID
	cfg     *Config
	journal *journal
	temp    *tempDir // nil: the process is not confined

	ctx    context.Context // ends with the process
	cancel context.CancelFunc
	gone   chan struct{} // closed when the process has been reaped and its calls have returned

	mu      sync.Mutex // guards the rest
	pending map[uint64]*call
	lastID  uint64
	retired bool // accepts no more calls
	memory  trend
	record

	peak atomic.Int64  // bytes of memory
	cpu  time.Duration // of all cores, when it began to accept calls

	announcer announcer

	pausing sync.Mutex // guards busy, and is held until the process has stopped
	busy    int        // reasons to let the process run, under Config.Pause
}

// serve receives results until the stream ends, and returns why it ended: nil if the plugin closed it.
func (p *process) serve() error {
	var watch sync.WaitGroup
	if !p.cfg.Pause {
		watch.Go(p.watch)
	}
	watch.Go(p.watchMemory)
	defer watch.Wait()
	defer p.cancel()
	defer func() { p.mu.Lock(); p.serving = time.Since(p.began); p.mu.Unlock() }()
	for {
		r, err := p.stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		p.reached(Reply)
		if err := p.deliver(r); err != nil {
			p.mu.Lock()
			p.violated = true
			p.mu.Unlock()
			p.kill(err.Error(), rulesHint)
			return err
		}
	}
}

// watch checks the health of the process until it ends.
func (p *process) watch() {
	t := time.NewTicker(p.cfg.HealthInterval)
	defer t.Stop()
	for {
		select {
		case <-p.ctx.Done():
			return
		case <-t.C:
		}
		var h *stagepb.HealthResponse
		err := p.cfg.awake.within(p.ctx, p.cfg.HealthTimeout, func(ctx context.Context) (err error) {
			h, err = p.stage.Health(ctx, &stagepb.HealthRequest{})
			return err
		})
		switch {
		case p.ctx.Err() != nil:
			return
		case err != nil:
			p.kill("health check: "+status.Convert(err).Message(), crashHint)
		case !h.Serving:
			p.kill("it reports that it cannot work: "+h.Message, crashHint)
		}
	}
}

// kill ends the process for a reason, with a hint. Only the first reason counts. kill does not wait: gone is closed
// when the process has ended.
func (p *process) kill(reason, hint string) {
	p.mu.Lock()
	if p.reason == "" {
		p.reason, p.hint = reason, hint
	}
	p.mu.Unlock()
	p.child.kill()
	p.cancel() // serve must end even if the process cannot
}

// kick kills the process because of what it wrote.
func (p *process) kick(reason string) {
	p.mu.Lock()
	p.kicked = true
	p.mu.Unlock()
	p.kill(reason, rulesHint)
}

func (p *process) faults() (kicked, violated bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kicked, p.violated
}

// life returns what the process did until its stream ended. The last batches of a kicked process do not count: up to
// one per slot has not been checked yet.
func (p *process) life() life {
	p.mu.Lock()
	defer p.mu.Unlock()
	unseen := 0
	if p.kicked {
		unseen = p.cfg.Ring.Slots()
	}
	return life{up: p.serving, finished: p.served > unseen}
}

// killTimeout is how long a killed process may take to end. Only a process that hangs in the kernel takes longer.
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

// release frees the resources of a process that has been reaped.
func (p *process) release() {
	p.cancel()
	p.client.Kill() // ends go-plugin's goroutines and the connection
	p.lifeline.Close()
	p.temp.remove()
}

// retire kills the rest of a process whose stream has ended, and returns when it has exited. Its calls return after
// that.
func (p *process) retire(err error) error {
	p.awaitExit(exitDelay) // a crash breaks the stream shortly before the process exits
	p.child.kill()
	if err := p.ended(killTimeout); err != nil {
		p.lose(err)
		return err
	}
	why, hint := p.why(err)
	lost := &PluginError{
		Plugin: p.cfg.Plugin.Name(), LastStderr: p.journal.last(), Err: fmt.Errorf("%w: %s", ErrLost, why), hint: hint,
		allowed: p.cfg.allowed(),
	}
	lost.Exit, _ = p.child.exit()
	lost.Kicked, lost.Violated = p.faults()
	p.lose(lost)
	return lost
}

// ended waits for the end of a process that is killed, or asked to end, and releases its resources. It returns an error
// that wraps errUnended if the process, or one that it has left, runs on and may still write to the ring.
func (p *process) ended(limit time.Duration) error {
	e := &PluginError{Plugin: p.cfg.Plugin.Name(), LastStderr: p.journal.last()}
	if !p.awaitExit(limit) {
		e.Err, e.hint = fmt.Errorf("process %s %w within %v of being killed", p.child.ID(), errUnended, killTimeout),
			kernelHint
		return e
	}
	p.release()
	if left := p.child.orphans.remaining; len(left) > 0 {
		e.Err, e.hint = fmt.Errorf("what it has left %w: %s", errUnended, visible.Text(strings.Join(left, ", "))),
			remainingHint
		return e
	}
	return nil
}

// finish ends a process that has answered everything: it asks the process to end, and kills it after the limit.
func (p *process) finish(limit time.Duration) error {
	p.reached(Shutdown)
	timer := time.AfterFunc(limit, func() { p.kill(fmt.Sprintf("it did not end within %v", limit), "") })
	p.conn.Close()     // GRPCController.Shutdown
	p.lifeline.Close() // for plugins without GRPCController
	err := p.ended(limit + killTimeout)
	timer.Stop()
	if err != nil {
		return err
	}
	if how, byItself := p.child.exit(); !byItself {
		why, hint := p.why(nil)
		return &PluginError{
			Plugin: p.cfg.Plugin.Name(), Exit: how, LastStderr: p.journal.last(), Err: errors.New(why), hint: hint,
		}
	}
	return nil
}

// why returns why the process ended: the host's reason, its own exit, or the error of the stream.
func (p *process) why(err error) (why, hint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	how, byItself := p.child.exit()
	switch {
	case p.reason != "":
		return p.reason, p.hint
	case byItself:
		return "it ended: " + how + p.during(), crashHint
	case err != nil:
		return "its connection broke" + p.during() + ": " + status.Convert(err).Message(), crashHint
	}
	p.violated = true
	return "it ended its stream", rulesHint
}

// during names the stage instances that the process was working on, with the steps. The caller holds mu.
func (p *process) during() string {
	steps := map[string][]int64{}
	for _, c := range p.pending {
		steps[c.stage()] = append(steps[c.stage()], c.msg.Step+1) // counted from 1 as in the log; 0 in evaluation
	}
	var names []string
	for _, stage := range slices.Sorted(maps.Keys(steps)) {
		slices.Sort(steps[stage])
		names = append(names, fmt.Sprintf("%s (%s)", stage, stepsText(slices.Compact(steps[stage]))))
	}
	if len(names) == 0 {
		return ""
	}
	return ", while it worked on " + strings.Join(names, " and ")
}

func stepsText(steps []int64) string {
	var text []string
	if steps[0] == 0 {
		text, steps = append(text, "evaluation"), steps[1:]
	}
	for i, step := range steps {
		if i == 0 {
			text = append(text, fmt.Sprintf("step %d", step))
		} else {
			text = append(text, fmt.Sprint(step))
		}
	}
	return strings.Join(text, ", ")
}

// drain asks the plugin to finish, then closes the stream. serve ends when the plugin has closed its side too.
func (p *process) drain(ctx context.Context) {
	p.reached(Drain)
	p.active() // to the end
	p.measure()
	if err := p.cfg.awake.within(ctx, p.cfg.DrainTimeout, func(ctx context.Context) error {
		_, err := p.stage.Drain(ctx, &stagepb.DrainRequest{})
		return err
	}); err != nil {
		p.kill("Drain: "+status.Convert(err).Message(), "")
		return
	}
	p.sendMu.Lock()
	defer p.sendMu.Unlock()
	p.stream.CloseSend()
}

var errLate = errors.New("no answer")
