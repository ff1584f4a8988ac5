package report

import (
	"io"
	"sync"
)

// lossyWriter is an output that may be closed at any time: a terminal, or a pipe to tee. This is no reason to end a
// run: the first failed write is reported, and Write never returns an error.
type lossyWriter struct {
	io.Writer
	name string
	lost func(text string) // nil: do not report
	once sync.Once
}

func (w *lossyWriter) Write(p []byte) (int, error) {
	if _, err := w.Writer.Write(p); err != nil && w.lost != nil {
		w.once.Do(func() {
			w.lost("the " + w.name + " cannot be written to, the run continues without it: " + err.Error())
		})
	}
	return len(p), nil
}
