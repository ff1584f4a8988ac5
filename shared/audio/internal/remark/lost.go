package remark

import (
	"errors"
	"fmt"
)

// lost is an error about a file that no other program can read either.
type lost struct{ error }

// Lost returns an error that says that a file has no audio to read: it cannot be converted.
func Lost(format string, args ...any) error { return lost{fmt.Errorf(format, args...)} }

// IsLost reports whether err is one of Lost.
func IsLost(err error) bool { return errors.As(err, new(lost)) }

// truncated is an error about a file of which most is missing.
type truncated struct{ error }

// Truncated returns an error that says that most of a recording is missing: a conversion saves only the rest.
func Truncated(format string, args ...any) error { return truncated{fmt.Errorf(format, args...)} }

// IsTruncated reports whether err is one of Truncated.
func IsTruncated(err error) bool { return errors.As(err, new(truncated)) }
