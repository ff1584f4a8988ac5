package report

import (
	"io"
	"sync"
)

// reader is an output that someone reads: a terminal, or a pipe to tee. A reader that goes away is no reason to end a run: the first
// write that fails is reported, and none fails for who writes.
type reader struct {
	io.Writer
	name string
	lost func(text string) // nil: no one is to know
	once sync.Once
}

func (r *reader) Write(p []byte) (int, error) {
	if _, err := r.Writer.Write(p); err != nil && r.lost != nil {
		r.once.Do(func() { r.lost("the " + r.name + " cannot be written to, the run goes on without it: " + err.Error()) })
	}
	return len(p), nil
}
