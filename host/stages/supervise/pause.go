package supervise

import "golang.org/x/sys/unix"

// active marks the process as at work until idle is called, once for each. Without Config.Pause both do nothing.
func (p *process) active() {
	if !p.cfg.Pause {
		return
	}
	p.pausing.Lock()
	defer p.pausing.Unlock()
	if p.busy++; p.busy == 1 {
		p.child.signal(unix.SIGCONT)
	}
}

// idle stops the process and its group if nothing else keeps it at work. No thread of the process runs when idle
// returns.
func (p *process) idle() {
	if !p.cfg.Pause {
		return
	}
	p.pausing.Lock()
	defer p.pausing.Unlock()
	if p.busy--; p.busy == 0 {
		p.child.stop()
	}
}

// signal sends a signal to the process and its group, unless it has been reaped.
func (c *child) signal(s unix.Signal) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pid > 0 {
		unix.Kill(-c.pid, s)
	}
	return c.pid
}

// stop suspends the process and waits until it is suspended, or has ended.
func (c *child) stop() {
	pid := c.signal(unix.SIGSTOP)
	if pid == 0 {
		return
	}
	for unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
