package cudac

import "fmt"

// UnsupportedError says why no kernel is generated for a region.
type UnsupportedError struct{ Reason string }

func (e *UnsupportedError) Error() string { return e.Reason }

func unsupported(format string, arguments ...any) error {
	return &UnsupportedError{fmt.Sprintf(format, arguments...)}
}
