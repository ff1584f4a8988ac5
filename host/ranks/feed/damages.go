package feed

import "sync"

// damages calls a function, if one is set.
type damages struct {
	mu   sync.Mutex
	call func()
}

func (d *damages) on(call func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.call = call
}

func (d *damages) happen() {
	d.mu.Lock()
	call := d.call
	d.mu.Unlock()
	if call != nil {
		call()
	}
}
