package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/visible"
)

// Processes are those of a plugin, as who sends batches to them sees them: a *Pool, or a way to the *Pool of another
// process of the host.
type Processes interface {
	Call(ctx context.Context, req Request) (Result, error)
	Kick(id ProcessID, reason string)
	KickAll(reason string)
	Workers() int
}

// Pool runs a plugin as n equal processes. All methods are safe for concurrent use.
type Pool struct {
	cfg   Config
	files program
	ctx   context.Context // ends when no process may be started any more
	stop  context.CancelFunc
	group sync.WaitGroup // the workers' goroutines

	mu       sync.Mutex // guards the rest
	workers  []*worker
	made     int           // workers so far
	changed  chan struct{} // closed and replaced when the state that waiters wait for may have changed
	waiting  []*waiter     // calls that wait for a process, in their order
	closing  bool
	failure  error       // set once, permanently
	limits   []deadlines // by stage instance
	calls    histogram
	slowest  time.Duration
	inFlight int
	stats    Stats
	memory   trend   // of the process with the most calls that has ended
	endErrs  []error // of processes that did not end well when asked to
}

// worker is one place in the pool. Its processes follow one another.
type worker struct {
	index    int
	restarts restarts // used by the worker's goroutine only
	proc     *process // guarded by Pool.mu; also while it is being retired
	up       bool     // guarded by Pool.mu; proc accepts calls
	inFlight int      // guarded by Pool.mu
	alone    int      // guarded by Pool.mu; number of calls that it gets one at a time
	recycle  func()   // guarded by Pool.mu; ends proc after its last call; nil if proc stays
	leaving  bool     // guarded by Pool.mu; its process is not replaced (Resize)
}

// NewPool starts all processes and configures them. The first failure ends them all, because the user must fix what a
// plugin refuses at the start. Only a process that is killed from outside or does not answer in time is started once
// more. ctx bounds only the start.
func NewPool(ctx context.Context, cfg Config) (*Pool, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, fmt.Errorf("plugin %s: %w", cfg.Plugin.Name(), err)
	}
	p := &Pool{cfg: cfg, files: programOf(cfg.Plugin.Dir, cfg.Plugin.Command), changed: make(chan struct{})}
	p.cfg.awake = newAwake()
	for range cfg.Configure.Instances {
		p.limits = append(p.limits, deadlines{fixed: cfg.CallTimeout, first: cfg.ConfigureTimeout})
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	Sweep()
	launching, cancel := context.WithCancel(ctx)
	defer cancel()
	var starts sync.WaitGroup
	var once sync.Once
	var first error
	for range cfg.Workers {
		w := p.newWorker()
		starts.Go(func() {
			var err error
			if w.proc, err = p.launchFirst(launching, w); err != nil {
				once.Do(func() { first = err })
				cancel()
			}
		})
	}
	starts.Wait()
	for _, w := range p.workers {
		if w.proc != nil {
			w.up = true
			p.group.Go(func() { p.run(w) })
		}
	}
	if first != nil {
		p.Close()
		return nil, first
	}
	cfg.Logger.Debug("plugin started", "plugin", cfg.Plugin.Name(), "version", cfg.Plugin.Manifest.Version, "pids",
		p.PIDs())
	return p, nil
}

// run runs the processes of one worker, one after another.
func (p *Pool) run(w *worker) {
	for {
		proc := w.proc
		err := proc.serve()
		p.update(func() { w.up = false; p.remember(proc) })
		if err == nil && (p.drained() || p.leaves(w)) {
			err = proc.finish(p.cfg.DrainTimeout)
			p.update(func() {
				if err != nil {
					p.endErrs = append(p.endErrs, err)
				}
				w.proc = nil
				p.forget(w)
				p.stats.Lines += proc.journal.written()
				if !errors.Is(err, errUnended) {
					p.stats.Orphans += len(proc.child.orphans.escaped)
				}
			})
			close(proc.gone)
			return
		}
		lost := proc.retire(err)
		close(proc.gone)
		p.update(func() {
			w.proc, w.recycle = nil, nil
			p.stats.Lines += proc.journal.written()
			if errors.Is(lost, errUnended) {
				p.giveUp(lost)
			} else {
				p.stats.Orphans += len(proc.child.orphans.escaped)
			}
			if p.closing {
				p.endErrs = append(p.endErrs, lost)
			}
		})
		if errors.Is(lost, errUnended) || p.leaves(w) || !p.replace(w, proc.id, proc.life(), lost) {
			p.update(func() { p.forget(w) })
			return
		}
	}
}

// drained reports whether the processes have been asked to end and have no calls in flight.
func (p *Pool) drained() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closing && p.inFlight == 0
}

// replace starts another process for a worker. It gives up if the pool ends or the policy says so.
func (p *Pool) replace(w *worker, id ProcessID, ended life, cause error) bool {
	for {
		if p.ctx.Err() != nil {
			return false
		}
		if err := p.files.changed(p.cfg.Plugin.Command[0], p.cfg.Plugin.Sum); err != nil {
			p.failChanged(err)
			return false
		}
		wait, loop := w.restarts.next(time.Now(), ended)
		if loop != "" {
			p.fail(w, loop, cause)
			return false
		}
		p.log(w, cause, wait)
		select {
		case <-p.ctx.Done():
			return false
		case <-time.After(wait):
		}
		id.Generation++
		proc, err := launch(p.ctx, &p.cfg, id)
		p.update(func() {
			p.stats.Restarts++
			if err == nil {
				p.began(w, proc)
			}
			if errors.Is(err, errUnended) {
				p.giveUp(err)
			}
		})
		if err == nil {
			return true
		}
		if errors.Is(err, errUnended) {
			return false
		}
		cause, ended = err, life{}
	}
}

// log logs why a process is replaced, with its last line on stderr. The other lines are in the log already.
func (p *Pool) log(w *worker, cause error, wait time.Duration) {
	var args []any
	if p.Workers() > 1 {
		args = append(args, "worker", w.index)
	}
	if wait > 0 {
		args = append(args, "wait", wait)
	}
	p.update(func() { p.stats.Cause = cause })
	why := cause.Error()
	var e *PluginError
	if errors.As(cause, &e) {
		why = e.Why()
		if last := summary(e.LastStderr); last != "" {
			args = append(args, "stderr", visible.Short(last, 200))
		}
	}
	p.cfg.Logger.Warn(fmt.Sprintf("plugin %s is restarted: %s", p.cfg.Plugin.Name(), why), args...)
}

// fail ends the pool permanently because a worker's processes keep ending.
func (p *Pool) fail(w *worker, loop string, cause error) {
	e := CrashLoop(p.cfg.Plugin.Name(), loop, cause)
	p.update(func() { p.giveUp(e) })
	p.cfg.Logger.Info("plugin given up", "plugin", p.cfg.Plugin.Name(), "worker", w.index, "reason", e.Err.Error())
}

// failChanged ends the pool permanently because there is nothing to restart.
func (p *Pool) failChanged(err error) {
	e := &PluginError{
		Plugin: p.cfg.Plugin.Name(), Err: fmt.Errorf("a process ended and cannot be restarted: %w", err),
		hint: changedHint,
	}
	p.update(func() { p.giveUp(e) })
}

// giveUp ends the pool permanently, for the first reason. It requires mu.
func (p *Pool) giveUp(why error) {
	if p.failure == nil {
		p.failure = why
	}
}

// update changes the state and wakes everyone who waits for a change.
func (p *Pool) update(change func()) {
	p.mu.Lock()
	change()
	p.wake()
	p.mu.Unlock()
}

// wake requires mu.
func (p *Pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// Call lets a stage instance process the batch in a slot. It waits for a process if none is up, and for the result.
// After it has returned, no process writes to the slot, whatever the outcome:
//
//   - an error that wraps ErrLost: the process ended, missed its deadline, or violated the protocol. It is dead.
//   - ErrFailed: the stage answered with an error
//   - ErrCrashLoop, ErrClosed: the pool accepts no more calls
//   - the cause of ctx's end, before a process got the call. A call in flight is waited for, at most for
//     Config.DrainTimeout.
//
// The first three come in a *PluginError. The guarantee fails only if a process cannot be ended: it hangs in the
// kernel, or the plugin has left a process of another user. Then Call returns a *PluginError that wraps none of these,
// and the pool has failed permanently.
func (p *Pool) Call(ctx context.Context, req Request) (Result, error) {
	if req.Instance < 0 || req.Instance >= len(p.cfg.Configure.Instances) {
		return Result{}, fmt.Errorf("plugin %s has no instance %d", p.cfg.Plugin.Name(), req.Instance)
	}
	for {
		w, proc, limit, err := p.acquire(ctx, &req)
		if err != nil {
			return Result{}, err
		}
		began := time.Now()
		out, taken := proc.do(ctx, &req, limit)
		took := time.Since(began)
		p.release(w, req.Instance, out.err, took, taken)
		if taken {
			out.res.Busy = min(max(0, out.res.Busy), took)
			return out.res, out.err
		}
	}
}

// waiter is a call that waits for a process.
type waiter struct {
	order uint64
	turn  chan struct{} // gets a value when it is the first waiter and may find a process
}

// acquire waits, in the order of the calls, for a process that can accept another call. It returns the process with the
// fewest calls in flight, or the first of several.
func (p *Pool) acquire(ctx context.Context, req *Request) (*worker, *process, time.Duration, error) {
	me := &waiter{order: req.Order, turn: make(chan struct{}, 1)}
	p.mu.Lock()
	defer p.mu.Unlock()
	at, _ := slices.BinarySearchFunc(p.waiting, me.order+1,
		func(w *waiter, order uint64) int { return cmp.Compare(w.order, order) })
	p.waiting = slices.Insert(p.waiting, at, me)
	defer func() {
		p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool { return w == me })
		p.next()
	}()
	for {
		switch {
		case p.failure != nil:
			return nil, nil, 0, p.failure
		case p.closing:
			return nil, nil, 0, fmt.Errorf("plugin %s: %w", p.cfg.Plugin.Name(), ErrClosed)
		}
		if best := p.best(); best != nil && p.waiting[0] == me && ctx.Err() == nil {
			best.inFlight++
			p.inFlight++
			return best, best.proc, p.limits[req.Instance].next(), nil
		}
		changed := p.changed
		p.mu.Unlock()
		select {
		case <-changed:
		case <-me.turn:
		case <-ctx.Done():
			p.mu.Lock()
			return nil, nil, 0, fmt.Errorf("plugin %s: %w", p.cfg.Plugin.Name(), context.Cause(ctx))
		}
		p.mu.Lock()
	}
}

// best returns the process for the next call, or nil. A process that follows a lost one gets its first calls one at a
// time: if one of them was the reason, the next loss names it. It requires mu.
func (p *Pool) best() (best *worker) {
	for _, w := range p.workers {
		room := p.cfg.InFlight
		if w.alone > 0 {
			room = 1
		}
		if w.up && w.inFlight < room && (best == nil || w.inFlight < best.inFlight) {
			best = w
		}
	}
	return best
}

// next wakes the first waiter if it may find a process. It requires mu.
func (p *Pool) next() {
	if len(p.waiting) == 0 || p.best() == nil {
		return
	}
	select {
	case p.waiting[0].turn <- struct{}{}:
	default: // it is already awake
	}
}

// release records the end of a call.
func (p *Pool) release(w *worker, instance int, err error, took time.Duration, taken bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.inFlight--
	p.inFlight--
	if w.inFlight == 0 && w.recycle != nil && !p.closing {
		w.recycle()
	}
	if p.closing && p.inFlight == 0 {
		p.wake()
	}
	p.next()
	if !taken {
		return
	}
	p.stats.Calls++
	switch {
	case errors.Is(err, ErrLost):
		p.stats.Lost++
		w.alone++
		return // how long it would have taken is unknown
	case err != nil:
		p.stats.Failed++
	}
	w.alone = max(0, w.alone-1)
	p.limits[instance].observe(took)
	p.calls.add(took)
	p.slowest = max(p.slowest, took)
}

// Drain ends the pool cleanly: it accepts no more calls, waits for those in flight, asks every process to end and waits
// for it. If ctx ends first, or Config.DrainTimeout passes after the last call, Drain kills the rest and returns an
// error. Close is still required.
func (p *Pool) Drain(ctx context.Context) error {
	p.update(func() { p.closing = true })
	p.stop()
	for !p.drained() && p.waitChange(ctx) {
	}
	var asked sync.WaitGroup
	for _, proc := range p.processes() {
		asked.Go(func() { proc.drain(ctx) })
	}
	asked.Wait()
	ended := make(chan struct{})
	go func() { p.group.Wait(); close(ended) }() // ends with the workers, which the kill below ends
	select {
	case <-ended:
	case <-ctx.Done():
		for _, proc := range p.processes() {
			proc.kill("it did not end in time", "")
		}
		<-ended
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return fmt.Errorf("drain plugin %s: %w", p.cfg.Plugin.Name(), context.Cause(ctx))
	}
	return errors.Join(p.endErrs...)
}

// waitChange waits for a change of the pool's state. It returns false if ctx ends first.
func (p *Pool) waitChange(ctx context.Context) bool {
	p.mu.Lock()
	changed, drained := p.changed, p.closing && p.inFlight == 0
	p.mu.Unlock()
	if drained {
		return true
	}
	select {
	case <-changed:
		return true
	case <-ctx.Done():
		return false
	}
}

const endReason = "the host ends"

// Close kills all remaining processes. It returns when every process has been reaped, every goroutine has ended and
// every temporary file is removed. Calls in flight return. It is idempotent and never fails.
func (p *Pool) Close() error {
	p.update(func() { p.closing = true })
	p.stop()
	for _, proc := range p.processes() {
		proc.kill(endReason, "")
	}
	p.group.Wait()
	p.cfg.awake.close()
	return nil
}
