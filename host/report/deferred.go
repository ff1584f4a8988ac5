package report

import (
	"errors"
	"sync"
	"time"

	"github.com/xtts-host/xtts-host/host/event"
)

// deferred collects windows for a moment, and has a goroutine of its own word and write them together: who has a step to note waits for
// neither. On a machine whose trainer sleeps while the GPU works, and then finds nothing in its caches, a line took 44 µs of a step:
// 27 to word the numbers, the rest in the system.
//
// Its methods belong to one goroutine, but for tick and flush.
type deferred struct {
	file *lines
	// line appends the line of a window.
	line func(b []byte, w *event.Step) []byte

	writing sync.Mutex // held while lines are worded and written; it guards out and file
	out     event.Steps

	mu        sync.Mutex // guards what follows; the last to be locked
	collected event.Steps
	due       bool        // the timer runs
	timer     *time.Timer // of tick; nil before the first window
	closed    bool        // the timer is not to be set again
	err       error       // of a line; nothing is written behind it

	told bool // err has been returned; flush does not know it
}

// lineDelay is how long a line waits at most. What reads along sees it that much later, and what kills the run loses it: that is behind
// the last checkpoint, where a resumed run goes on, since sync is in front of every checkpoint.
const lineDelay = 250 * time.Millisecond

// maxCollected is how many windows wait at most, some 20 MB. Behind a disk that hangs for so long add waits too.
const maxCollected = 1 << 16

// add notes a window, which may be used again. The error is that of an earlier line.
func (d *deferred) add(w *event.Step) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.collected) == maxCollected {
		d.mu.Unlock()
		d.flush()
		d.mu.Lock()
	}
	if d.err != nil {
		d.told = true
		return d.err
	}
	d.collected.Add(w)
	if d.due {
		return nil
	}
	d.due = true
	if d.timer == nil {
		d.timer = time.AfterFunc(lineDelay, d.tick)
	} else {
		d.timer.Reset(lineDelay)
	}
	return nil
}

// tick writes what has been collected. While there was some, it sets the timer itself: who has a step to note would wait some 8 µs for it.
func (d *deferred) tick() {
	n := d.flush()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.due = !d.closed && (n > 0 || len(d.collected) > 0); d.due {
		d.timer.Reset(lineDelay)
	}
}

// flush writes what has been collected, and returns how many windows that were.
func (d *deferred) flush() int {
	d.writing.Lock()
	defer d.writing.Unlock()
	d.mu.Lock()
	d.out, d.collected = d.collected, d.out[:0]
	failed := d.err
	d.mu.Unlock()
	if failed != nil || len(d.out) == 0 {
		return 0
	}
	if err := d.write(); err != nil {
		d.mu.Lock()
		d.err = err
		d.mu.Unlock()
	}
	return len(d.out)
}

// write words and writes what is in out, up to a line that could not be read again.
func (d *deferred) write() error {
	text := d.file.buf[:0]
	var tooLong error
	for i := range d.out {
		begin := len(text)
		text = d.line(text, &d.out[i])
		if tooLong = d.file.fits(text[begin:]); tooLong != nil {
			text = text[:begin]
			break
		}
	}
	d.file.buf = text
	if err := d.file.append(text); err != nil {
		return err
	}
	return tooLong
}

// settle writes what has been collected, and returns the error of a line, now or earlier.
func (d *deferred) settle() error {
	d.flush()
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

// sync makes the lines durable.
func (d *deferred) sync() error {
	if err := d.settle(); err != nil {
		d.told = true
		return err
	}
	d.writing.Lock()
	defer d.writing.Unlock()
	return d.file.sync()
}

// close writes what is left. It may be called again, and tells no error again.
func (d *deferred) close() error {
	d.mu.Lock()
	d.closed = true
	if d.timer != nil {
		d.timer.Stop() // flush waits for one that runs already
	}
	d.mu.Unlock()
	err := d.settle()
	if d.told {
		err = nil
	}
	d.told = true
	d.writing.Lock()
	defer d.writing.Unlock()
	return errors.Join(err, d.file.close())
}
