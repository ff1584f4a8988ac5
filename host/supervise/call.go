package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Request is one batch for one stage instance.
type Request struct {
	// Instance is an index into ConfigureRequest.Instances, Bucket into its Layouts, Slot into the ring.
	Instance, Slot, Bucket int
	Epoch, Step            int64 // Step is -1 in evaluation
	// Order says who comes first where calls wait for a process: the lowest.
	Order uint64
	// RowKeys holds 16 bytes for each row of the batch. It is read before Call returns, never kept.
	RowKeys []byte
}

// Result is a stage's answer.
type Result struct {
	// Bad are the rows that the stage rejects. When there are any, the slot's content is undefined.
	Bad []BadRow
	// Busy is the time spent in the stage itself, as the plugin tells it, at most the duration of the call.
	Busy time.Duration
	// Process is the process that served the call, for Kick.
	Process ProcessID
}

// BadRow is a row of the batch that the stage rejects, with a reason for people.
type BadRow struct {
	Row    int
	Reason string
}

// call is a Request in flight. Calls are reused with their message, channel and timer.
type call struct {
	msg   stagepb.Call
	rows  int
	proc  *process
	limit time.Duration // after which the timer has the process killed
	timer *time.Timer
	done  chan outcome // has room for the one outcome
}

type outcome struct {
	res Result
	err error
}

var calls = sync.Pool{New: func() any {
	c := &call{done: make(chan outcome, 1)}
	c.timer = time.AfterFunc(time.Hour, func() { c.proc.expire(c) })
	c.timer.Stop()
	return c
}}

// stage names the stage instance for people.
func (c *call) stage() string {
	return "stage " + c.proc.cfg.Configure.Instances[c.msg.Instance].GetName()
}

// do sends the request and waits for its outcome. It reports false when the process did not take it.
func (p *process) do(ctx context.Context, req *Request, limit time.Duration) (outcome, bool) {
	c := calls.Get().(*call)
	c.msg.Instance, c.msg.Slot, c.msg.Bucket = uint32(req.Instance), uint32(req.Slot), uint32(req.Bucket)
	c.msg.Epoch, c.msg.Step, c.msg.RowKeys = req.Epoch, req.Step, req.RowKeys
	c.rows, c.proc, c.limit = len(req.RowKeys)/stage.KeySize, p, limit
	if !p.register(c) {
		return outcome{}, false
	}
	c.timer.Reset(limit)
	p.send(&c.msg)
	p.reached(Batch)
	var out outcome
	select {
	case out = <-c.done:
	case <-ctx.Done():
		// The slot is in the plugin's hands until it answers or is dead: a batch takes milliseconds, so let it.
		if grace := p.cfg.DrainTimeout; grace < limit && c.timer.Stop() {
			c.limit = grace
			c.timer.Reset(grace)
		}
		out = <-c.done
	}
	c.release()
	return out, true
}

// release puts the call up for reuse, unless its timer has fired: then expire may still be looking at it.
func (c *call) release() {
	c.msg.RowKeys = nil
	if c.timer.Stop() {
		c.proc = nil
		calls.Put(c)
	}
}

// register gives the call its number. It fails when the process takes no more calls.
func (p *process) register(c *call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.retired {
		return false
	}
	p.lastID++
	c.msg.Id = p.lastID
	p.pending[c.msg.Id] = c
	return true
}

// send passes a message on. gRPC has encoded it when Send returns.
func (p *process) send(msg *stagepb.Call) {
	p.sendMu.Lock()
	err := p.stream.Send(msg)
	p.sendMu.Unlock()
	// io.EOF: the stream is broken, and serve learns why.
	if err != nil && !errors.Is(err, io.EOF) && p.ctx.Err() == nil {
		p.kill("the host could not send a call: "+err.Error(), crashHint)
	}
}

// expire is what the timer of a call does.
func (p *process) expire(c *call) {
	p.mu.Lock()
	late := p.pending[c.msg.Id] == c
	p.mu.Unlock()
	if late {
		p.kill(fmt.Sprintf("%s: no result within %v", c.stage(), c.limit), lateHint)
	}
}

// deliver gives a result to its call. An error means that the process does not keep to the protocol.
func (p *process) deliver(r *stagepb.Result) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.pending[r.Id]
	if !ok {
		return fmt.Errorf("it sent a result for call %d, which is not in flight%s", r.Id, p.during())
	}
	out := outcome{res: Result{Busy: time.Duration(r.Nanoseconds), Process: p.id}}
	for _, b := range r.BadRows {
		if int(b.Row) >= c.rows {
			return fmt.Errorf("%s: it rejects row %d of a batch of %d", c.stage(), b.Row, c.rows)
		}
		out.res.Bad = append(out.res.Bad, BadRow{int(b.Row), b.Reason})
	}
	if r.Error != "" {
		message, hint := splitHint(r.Error)
		out.err = &PluginError{Plugin: p.cfg.Plugin.Name(), Err: fmt.Errorf("%s %w: %s", c.stage(), ErrFailed, message), hint: cmp.Or(hint, crashHint)}
	} else {
		p.served++
	}
	delete(p.pending, r.Id)
	c.done <- out
	return nil
}

// lose fails every call in flight. No other is accepted.
func (p *process) lose(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for id, c := range p.pending {
		delete(p.pending, id)
		c.done <- outcome{res: Result{Process: p.id}, err: err}
	}
}
