package samples

import "github.com/xtts-host/xtts-host/host/observe/event"

// Mean is the mean of a measure over the utterances of an evaluation, which may be nil, that have it.
func Mean(e *event.Spoken, name string) (float64, bool) {
	if e == nil {
		return 0, false
	}
	return event.Find(e.Measures, name)
}
