package supervise

// Phase names a point in the life of a process, as Config.Reached is told of it.
type Phase string

// The phases, in order. Batch and Reply come once for each call.
const (
	Start     Phase = "start"     // the process runs and has said nothing yet
	Handshake Phase = "handshake" // it is connected; Info comes next
	Configure Phase = "configure" // Configure comes next
	Attach    Phase = "attach"    // Attach comes next
	Batch     Phase = "batch"     // a call has been sent
	Reply     Phase = "reply"     // a result has come, its call has not returned
	Drain     Phase = "drain"     // Drain comes next
	Shutdown  Phase = "shutdown"  // it has answered everything; Shutdown comes next
)

// reached tells who wants to know. It may take its time: nothing is locked.
func (p *process) reached(phase Phase) {
	if p.cfg.Reached != nil {
		p.cfg.Reached(phase, p.id, p.child.cmd.Process.Pid)
	}
}
