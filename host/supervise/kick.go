package supervise

// Kick has one process killed and replaced, and returns when it has ended. It is for what only the host can see: a
// slot with a damaged guard. The restart counts as any other. A process that is already gone is left in peace.
func (p *Pool) Kick(id ProcessID, reason string) {
	p.kick(reason, func(have ProcessID) bool { return have == id })
}

// KickAll does so with all processes of the pool, when it is not known which of them did the damage.
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

// Recycle has one process replaced between two batches: it gets no more of them, and ends when those that it works on are done.
// Recycle does not wait for that. It is for a process that has done nothing wrong to a batch, but cannot stay: one that takes
// ever more memory. hint is what people may do about the reason. A process that is already gone is left in peace.
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
