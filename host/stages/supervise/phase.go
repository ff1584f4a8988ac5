package supervise

// Phase is a point in the life of a process, for Config.Reached.
type Phase string

// The phases, in order. Batch and Reply come once for each call.
const (
	Start     Phase = "start"     // the process runs and has not sent anything
	Handshake Phase = "handshake" // the process is connected; Info is the next call
	Configure Phase = "configure" // Configure is the next call
	Attach    Phase = "attach"    // Attach is the next call
	Batch     Phase = "batch"     // a call has been sent
	Reply     Phase = "reply"     // a result has arrived, its call has not returned
	Drain     Phase = "drain"     // Drain is the next call
	Shutdown  Phase = "shutdown"  // all calls are answered; Shutdown is the next call
)

// reached calls Config.Reached, which may block: no lock is held.
func (p *process) reached(phase Phase) {
	p.announce(phase)
	if p.cfg.Reached != nil {
		p.cfg.Reached(phase, p.id, p.child.cmd.Process.Pid)
	}
}
