package dataset

import (
	"errors"
	"fmt"
)

// ErrNoRows is returned when a data set, or a plan over it, has no row to train on.
var ErrNoRows = errors.New("no usable row")

// hinted is an error with a next step for the person who reads it.
type hinted struct {
	error
	hint string
}

func (e *hinted) Unwrap() error { return e.error }

// Hint returns the line that the command line prints after the error.
func (e *hinted) Hint() string { return e.hint }

func withHint(hint, format string, args ...any) error {
	return &hinted{fmt.Errorf(format, args...), hint}
}
