// Package exit maps the error of a command to its exit status, its message and its hint.
//
// An error says its status itself, as it says its hint: by a method ExitStatus() int, which an error of [New] has. So
// the package of an error decides what a script sees of it, and this one knows only the errors of files.
package exit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// The exit statuses of errors. A command without an error has 0, and one with an error that has no status 1.
const (
	StatusRefused     = 2   // found before the first step
	StatusMemory      = 3   // out of memory, or a memory limit that is too small
	StatusPlugin      = 4   // a plugin keeps crashing or failing, broke the protocol, or was changed
	StatusData        = 5   // too many rows of the data set cannot be used
	StatusRank        = 6   // another rank of the run has ended or failed
	StatusInterrupted = 130 // the user has ended the command, and a run has saved a checkpoint
)

// order has the status that decides first, if an error has several.
var order = []int{StatusInterrupted, StatusMemory, StatusPlugin, StatusData, StatusRank, StatusRefused}

// ErrInterrupted means that the user has ended the command.
var ErrInterrupted = New(StatusInterrupted, "interrupted")

// New returns an error with a status. Every call returns an error of its own, as errors.New does.
func New(status int, text string) error {
	if !slices.Contains(order, status) {
		panic(fmt.Sprintf("exit status %d has no place in the order", status))
	}
	return &withStatus{text, status}
}

type withStatus struct {
	text   string
	status int
}

func (e *withStatus) Error() string   { return e.text }
func (e *withStatus) ExitStatus() int { return e.status }

// refusal marks an error that is found before the first step.
type refusal struct{ error }

func (r refusal) Unwrap() error   { return r.error }
func (r refusal) ExitStatus() int { return StatusRefused }

// Refused marks an error as found before the first step. Nil stays nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return refusal{err}
}

// IsRefusal reports whether Refused has marked the error.
func IsRefusal(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}

// Hint returns the hint of an error, or "".
func Hint(err error) string {
	if link, ok := errors.AsType[*files.LinkError](err); ok { // whatever was to be done with the file
		return visible.Text(link.Hint())
	}
	if h := hint.Of(err); h != "" {
		return visible.Text(h)
	}
	if OutOfMemory(err) {
		return "try a smaller --batch-size, then a smaller --buffer-size, then --accumulate"
	}
	return ""
}

// OutOfMemory reports whether ONNX Runtime or the driver could not allocate memory.
func OutOfMemory(err error) bool {
	return Has(err, StatusMemory)
}

// maxLine limits the bytes that are shown of each line of a message.
const maxLine = 2000

// Text returns the message of an error. It shortens long lines, because an untrusted file can put any text into them,
// and makes control characters visible. A line break in foreign text is no new line.
func Text(err error) string {
	lines := visible.Error(err)
	for i, line := range lines {
		if len(line) > maxLine {
			lines[i] = strings.ToValidUTF8(line[:maxLine], "") + fmt.Sprintf("... and %d bytes more", len(line)-maxLine)
		}
	}
	return strings.Join(lines, "\n")
}

// Usage marks an error of the command line and adds a hint.
func Usage(err error, advice string) error { return Refused(hint.Errorf(advice, "%w", err)) }

// Advise adds a hint to an error that has none.
func Advise(err error, advice string) error {
	if err == nil || Hint(err) != "" {
		return err
	}
	return hint.Errorf(advice, "%w", err)
}

// Interrupted reports whether the user has ended the command, which is no error to the user, and nothing else has
// happened.
func Interrupted(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return Interrupted(e.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !Interrupted(err) })
	}
	return err == ErrInterrupted
}

// Has reports whether an error, or one that it wraps, has the status. A method Is does not count: it says nothing of a
// status.
func Has(err error, status int) bool {
	if e, ok := err.(interface{ ExitStatus() int }); ok && e.ExitStatus() == status {
		return true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return Has(e.Unwrap(), status)
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), func(err error) bool { return Has(err, status) })
	}
	return false
}

// Code returns the exit status of an error: 0 for nil, 1 for an error without a status, such as a failed write or a
// loss that is not finite. A disk that failed before the first step is status 1 as well.
func Code(err error) int {
	if err == nil {
		return 0
	}
	for _, status := range order {
		if Has(err, status) && !(status == StatusRefused && files.Failed(err)) {
			return status
		}
	}
	return 1
}
