package report

import (
	"io"
	"sync"
)

// reader is an output that may be closed at any time: a terminal, or a pipe to tee. This is no reason to end a run: the
// first failed write is reported, and Write never returns an error.
type reader struct {
	io.Writer
	name string
	lost func(text string) // nil: do not report
	once sync.Once
}

func (r *reader) Write(p []byte) (int, error) {
	if _, err := r.Writer.Write(p); err != nil && r.lost != nil {
		r.once.Do(func() {
			r.lost("the " + r.name + " cannot be written to, the run continues without it: " + err.Error())
		})
	}
	return len(p), nil
}
