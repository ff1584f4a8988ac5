// Package hint attaches a hint to an error: the next step for the user. The text of the error does not change. The
// command line prints the hint on a separate line, also for an error from a plugin.
//
//	return hint.Errorf("give --ring-memory 64MiB or more", "ring memory of %s holds no slot", size)
//
// An error type with a method Hint() string has the same effect.
package hint

import (
	"errors"
	"fmt"
)

// Errorf is fmt.Errorf with a hint. The hint is one line without a full stop.
func Errorf(hint, format string, args ...any) error {
	return &hinted{fmt.Errorf(format, args...), hint}
}

// Of returns the hint of the outermost error in err's tree that has one, or "".
func Of(err error) string {
	var h interface{ Hint() string }
	if errors.As(err, &h) {
		return h.Hint()
	}
	return ""
}

type hinted struct {
	error
	hint string
}

func (h *hinted) Unwrap() error { return h.error }
func (h *hinted) Hint() string  { return h.hint }
