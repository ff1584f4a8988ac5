package host

import (
	"errors"
	"fmt"

	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
)

// ErrQuarantine says that more rows were unusable than the run allows.
var ErrQuarantine = errors.New("too many unusable rows")

// refusal marks what is wrong before the first step.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// hinted is an error with the next step for people.
type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }
func (h *hinted) Hint() string  { return h.hint }

func withHint(hint, format string, args ...any) error {
	return &hinted{fmt.Errorf(format, args...), hint}
}

// Hint returns what an error suggests to do next, or "".
func Hint(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	if errors.Is(err, ort.ErrOutOfMemory) {
		return "try a smaller --batch-size, then a smaller --buffer-size, then --accumulate"
	}
	return ""
}

// Usage marks an error of the command line, with the next step.
func Usage(err error, hint string) error { return refusal{&hinted{err, hint}} }

// ExitCode is the exit status for what Run returned: 0 done; 1 input or output failed, or training did not stay
// finite; 2 refused before the first step; 3 out of memory; 4 a plugin keeps crashing; 5 too many unusable rows; 130
// interrupted, with a checkpoint saved.
func ExitCode(err error) int {
	var r refusal
	switch {
	case err == nil:
		return 0
	case errors.Is(err, train.ErrInterrupted):
		return 130
	case errors.Is(err, ort.ErrOutOfMemory):
		return 3
	case errors.Is(err, supervise.ErrCrashLoop):
		return 4
	case errors.Is(err, ErrQuarantine):
		return 5
	case errors.As(err, &r):
		return 2
	}
	return 1
}
