package supervise

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Resize changes the number of processes, to 1 at least. It does not wait: a new process gets calls when it has
// started, and one that is too many ends after its calls in flight. The log has the error of one that cannot be
// started, and the pool goes on with the others. Resize does nothing if the pool accepts no more calls.
func (p *Pool) Resize(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closing || p.failure != nil {
		return
	}
	var stay []*worker
	for _, w := range p.workers {
		if !w.leaving {
			stay = append(stay, w)
		}
	}
	for range n - len(stay) {
		w := p.addWorker()
		p.group.Go(func() { p.join(w) })
	}
	for _, w := range stay[min(len(stay), max(1, n)):] {
		w.leaving = true
		p.dismiss(w)
	}
}

// newWorker is addWorker of a pool without mu.
func (p *Pool) newWorker() *worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addWorker()
}

// addWorker adds a worker without a process. It requires mu.
func (p *Pool) addWorker() *worker {
	w := &worker{index: p.made, restarts: restarts{policy: p.cfg.Restart}}
	p.made++
	p.workers = append(p.workers, w)
	return w
}

// join starts the first process of a worker that was added, and runs its processes.
func (p *Pool) join(w *worker) {
	proc, err := p.launchFirst(p.ctx, w)
	p.update(func() {
		switch {
		case err == nil:
			p.began(w, proc)
			return
		case errors.Is(err, errUnended):
			p.giveUp(err)
		}
		w.leaving = true
		p.forget(w)
	})
	if err == nil {
		p.run(w)
	} else if p.ctx.Err() == nil {
		p.cfg.Logger.Warn(fmt.Sprintf("plugin %s gets no further process: %v", p.cfg.Plugin.Name(), err))
	}
}

// began records that a process of the worker has started. It requires mu.
func (p *Pool) began(w *worker, proc *process) {
	w.proc, w.up = proc, true
	switch {
	case p.closing:
		proc.kill(endReason, "") // Close and Drain did not see the new process
	case w.leaving:
		p.dismiss(w)
	}
}

// dismiss ends the process of a worker after its calls in flight. It requires mu.
func (p *Pool) dismiss(w *worker) {
	if !w.up {
		return // there is none, or it ends for another reason
	}
	proc := w.proc
	w.up = false
	w.recycle = func() { p.group.Go(func() { proc.drain(context.Background()) }) }
	if w.inFlight == 0 {
		w.recycle()
	}
}

// leaves reports whether the processes of a worker are not replaced.
func (p *Pool) leaves(w *worker) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return w.leaving
}

// forget removes a worker that has left. It requires mu.
func (p *Pool) forget(w *worker) {
	if w.leaving {
		p.workers = slices.DeleteFunc(p.workers, func(o *worker) bool { return o == w })
	}
}
