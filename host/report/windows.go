package report

import "github.com/xtts-host/xtts-host/host/train"

// Windows are windows that are kept, in memory of their own. Cut back to no length, they use it again.
type Windows []Noted

// Noted is a window with the number of valid target frames in it.
type Noted struct {
	train.Window
	Frames int
}

// Add keeps a copy of a window.
func (l *Windows) Add(w *train.Window, frames int) {
	n := len(*l)
	if n == cap(*l) {
		*l = append(*l, Noted{})
	} else {
		*l = (*l)[:n+1] // whose slices have been there before
	}
	c := &(*l)[n]
	w.CopyTo(&c.Window)
	c.Frames = frames
}
