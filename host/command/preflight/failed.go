package preflight

import (
	"github.com/xtts-host/xtts-host/host/base/units"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Failed returns the error of a command that has printed so many problems. It has the exit status of the first of them,
// which may be nil, but not its text.
func Failed(problems int, first error) error {
	return hint.Errorf("see the lines marked ✗", "%w", &failed{problems, first})
}

type failed struct {
	problems int
	first    error
}

func (e *failed) Error() string {
	return "training with these settings cannot work: " + units.Count(e.problems, "problem")
}

func (e *failed) Unwrap() error { return e.first }
