package supervise

// Kick kills and replaces one process, and returns when it has ended. It is for violations that only the host can see,
// such as a damaged guard. The restart counts like any other. Kick does nothing if the process has already ended.
func (p *Pool) Kick(id ProcessID, reason string) {
	p.kick(reason, func(have ProcessID) bool { return have == id })
}

// KickAll kicks all processes of the pool, for damage by an unknown process.
func (p *Pool) KickAll(reason string) {
	p.kick(reason, func(ProcessID) bool { return true })
}

func (p *Pool) kick(reason string, match func(ProcessID) bool) {
	var kicked []*process
	for _, proc := range p.processes() {
		if match(proc.id) {
			proc.kick(reason)
			kicked = append(kicked, proc)
		}
	}
	for _, proc := range kicked {
		<-proc.gone
	}
}

// Recycle replaces one process between two batches: it gets no more calls and ends when its calls in flight are done.
// Recycle does not wait for that. It is for a process that has not damaged a batch but cannot stay, for example because
// its memory grows. hint is the hint for the reason. Recycle does nothing if the process has already ended.
func (p *Pool) Recycle(id ProcessID, reason, hint string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.workers {
		if !w.up || w.proc.id != id {
			continue
		}
		w.up = false
		proc := w.proc
		w.recycle = func() { proc.kill(reason, hint) }
		if w.inFlight == 0 && !p.closing {
			w.recycle()
		}
	}
}
