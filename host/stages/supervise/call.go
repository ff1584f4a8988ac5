package supervise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/shared/stage"
	"github.com/xtts-host/xtts-host/shared/stagepb"
)

// Request is one batch for one stage instance.
type Request struct {
	// Instance is an index into ConfigureRequest.Instances, Bucket into its Layouts, Slot into the ring.
	Instance, Slot, Bucket int
	Epoch, Step            int64 // Step is -1 in evaluation
	// Order is the priority of calls that wait for a process: the lowest comes first.
	Order uint64
	// RowKeys holds 16 bytes for each row of the batch. Call reads it before it returns and does not keep it.
	RowKeys []byte
	// ClipIDs names the clip of each row, for the plugin's messages. Call treats it like RowKeys.
	ClipIDs []string
	// Sources has the part of a clip that each row is, or nothing. Call treats it like RowKeys. A process that has only
	// protocol 1 gets none.
	Sources []*stagepb.Source
	// Report asks for what the stage draws. A process that has only protocol 1 is not asked.
	Report bool
}

// Result is a stage's answer.
type Result struct {
	// Bad lists the rows that the stage rejects. If there are any, the slot's content is undefined.
	Bad []BadRow
	// Busy is the time spent in the stage itself, as reported by the plugin, but at most the duration of the call.
	Busy time.Duration
	// Draws has a JSON object for each row of the batch that the stage reported draws of, and nil for the others. It is
	// nil if there are none. The text is the plugin's: show it by package visible.
	Draws []json.RawMessage
	// Process is the process that served the call, for Kick.
	Process ProcessID
}

// BadRow is a row of the batch that the stage rejects, with a reason for the user.
type BadRow struct {
	Row    int
	Reason string
}

// call is a Request in flight. Calls are reused with their message, channel and timer.
type call struct {
	msg    stagepb.Call
	rows   int
	proc   *process
	limit  time.Duration // after it, the timer kills the process
	pauses int           // of the host, before the limit began
	timer  *time.Timer
	done   chan outcome // has room for the only outcome
}

type outcome struct {
	res Result
	err error
}

// withSources is the version of the protocol that has Call.sources, Call.report and Result.draws.
const withSources = 2

var calls = sync.Pool{New: func() any {
	c := &call{done: make(chan outcome, 1)}
	c.timer = time.AfterFunc(time.Hour, func() { c.proc.expire(c) })
	c.timer.Stop()
	return c
}}

// stage names the stage instance for messages.
func (c *call) stage() string {
	return "stage " + c.proc.cfg.Configure.Instances[c.msg.Instance].GetName()
}

// do sends the request and waits for its outcome. It returns false if the process did not accept it.
func (p *process) do(ctx context.Context, req *Request, limit time.Duration) (outcome, bool) {
	c := calls.Get().(*call)
	c.msg.Instance, c.msg.Slot, c.msg.Bucket = uint32(req.Instance), uint32(req.Slot), uint32(req.Bucket)
	c.msg.Epoch, c.msg.Step, c.msg.RowKeys, c.msg.ClipIds = req.Epoch, req.Step, req.RowKeys, req.ClipIDs
	if p.protocol >= withSources {
		c.msg.Sources, c.msg.Report = req.Sources, req.Report
	}
	c.rows, c.proc, c.limit = len(req.RowKeys)/stage.KeySize, p, limit
	if !p.register(c) {
		return outcome{}, false
	}
	p.active()
	defer p.idle()
	c.pauses = p.cfg.awake.count()
	c.timer.Reset(limit)
	p.send(&c.msg)
	p.reached(Batch)
	var out outcome
	select {
	case out = <-c.done:
	case <-ctx.Done():
		// The plugin owns the slot until it answers or is dead. A batch takes milliseconds, so wait for it.
		if grace := p.cfg.DrainTimeout; grace < limit && c.timer.Stop() {
			c.limit = grace
			c.timer.Reset(grace)
		}
		out = <-c.done
	}
	c.release()
	return out, true
}

// release makes the call available for reuse, unless its timer has fired: then expire may still use it.
func (c *call) release() {
	c.msg.RowKeys, c.msg.ClipIds, c.msg.Sources, c.msg.Report = nil, nil, nil, false
	if c.timer.Stop() {
		c.proc = nil
		calls.Put(c)
	}
}

// register assigns a number to the call. It fails if the process accepts no more calls.
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

// send sends a message. gRPC has encoded it when Send returns.
func (p *process) send(msg *stagepb.Call) {
	p.sendMu.Lock()
	err := p.stream.Send(msg)
	p.sendMu.Unlock()
	// io.EOF: the stream is broken, and serve finds out why.
	if err != nil && !errors.Is(err, io.EOF) && p.ctx.Err() == nil {
		p.kill("the host could not send a call: "+err.Error(), crashHint)
	}
}

// expire runs when the timer of a call fires.
func (p *process) expire(c *call) {
	p.mu.Lock()
	late := p.pending[c.msg.Id] == c
	p.mu.Unlock()
	if !late {
		return
	}
	if pauses := p.cfg.awake.count(); pauses != c.pauses {
		c.pauses = pauses
		c.timer.Reset(c.limit)
		return
	}
	p.kill(fmt.Sprintf("%s: no result within %v", c.stage(), c.limit), lateHint)
}

// deliver passes a result to its call. An error means that the process violated the protocol.
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
		out.res.Bad = append(out.res.Bad, BadRow{int(b.Row), visible.Text(b.Reason)})
	}
	draws, err := c.draws(r)
	if err != nil {
		return fmt.Errorf("%s: %w", c.stage(), err)
	}
	out.res.Draws = draws
	if r.Error != "" {
		e := &PluginError{Plugin: p.cfg.Plugin.Name(), allowed: p.cfg.allowed()}
		message, hint := e.splitHint(r.Error)
		e.Err, e.hint = fmt.Errorf("%s %w: %s", c.stage(), ErrFailed, message), cmp.Or(hint, crashHint)
		out.err = e
	} else {
		p.served++
	}
	delete(p.pending, r.Id)
	c.done <- out
	return nil
}

// lose fails every call in flight. No more calls are accepted.
func (p *process) lose(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.retired = true
	for id, c := range p.pending {
		delete(p.pending, id)
		c.done <- outcome{res: Result{Process: p.id}, err: err}
	}
}
