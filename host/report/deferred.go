package report

import (
	"errors"
	"sync"
	"time"
)

// deferred collects lines for a moment and writes them together, on a goroutine of its own: neither a system call nor a slow disk holds
// up who has a line to write. On a machine whose trainer sleeps while the GPU works, and then finds nothing in its caches, a line cost
// 44 µs of a step; this way it is 2.
//
// Its methods belong to one goroutine.
type deferred struct {
	*lines // that goroutine uses buf alone

	file sync.Mutex // held while lines are written
	out  []byte     // guarded by file

	mu        sync.Mutex // guards what follows; the last to be locked
	collected []byte
	due       bool        // the timer runs
	timer     *time.Timer // nil before the first line
	err       error       // of a write; nothing is written behind it
}

// lineDelay is how long a line waits at most. What reads along sees it that much later, and what kills the run loses it: that is behind
// the last checkpoint, where a resumed run goes on, since sync is in front of every checkpoint.
const lineDelay = 250 * time.Millisecond

// write takes over l.buf. The error may be that of an earlier line.
func (d *deferred) write() error {
	if err := d.fits(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return d.err
	}
	d.collected = append(d.collected, d.buf...)
	if !d.due {
		d.due = true
		if d.timer == nil {
			d.timer = time.AfterFunc(lineDelay, d.flush)
		} else {
			d.timer.Reset(lineDelay)
		}
	}
	return nil
}

// flush writes what has been collected.
func (d *deferred) flush() {
	d.file.Lock()
	defer d.file.Unlock()
	d.mu.Lock()
	d.out, d.collected = d.collected, d.out[:0]
	d.due = false
	failed := d.err
	d.mu.Unlock()
	if failed != nil || len(d.out) == 0 {
		return
	}
	if err := d.append(d.out); err != nil {
		d.mu.Lock()
		d.err = err
		d.mu.Unlock()
	}
}

// failure returns the error of a write.
func (d *deferred) failure() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// sync makes the lines durable.
func (d *deferred) sync() error {
	d.flush()
	if err := d.failure(); err != nil {
		return err
	}
	d.file.Lock()
	defer d.file.Unlock()
	return d.lines.sync()
}

// close writes what is left. It may be called again.
func (d *deferred) close() error {
	if d.timer != nil {
		d.timer.Stop() // one that runs already is waited for by flush
	}
	d.flush()
	d.file.Lock()
	defer d.file.Unlock()
	return errors.Join(d.failure(), d.lines.close())
}
