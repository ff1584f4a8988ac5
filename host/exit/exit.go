// Package exit maps the error of a command to its exit status, its message and its hint.
package exit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/files"
	"github.com/xtts-host/xtts-host/shared/hint"
	"github.com/xtts-host/xtts-host/shared/visible"
)

// refusal marks an error that is found before the first step.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

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
	switch {
	case OutOfMemory(err):
		return "try a smaller --batch-size, then a smaller --buffer-size, then --accumulate"
	case errors.Is(err, train.ErrNotFinite):
		return "try a smaller --lr, a longer --warmup-steps or a smaller --grad-clip, and listen to the clips of the skipped steps"
	}
	return ""
}

// OutOfMemory reports whether ONNX Runtime or the driver could not allocate memory.
func OutOfMemory(err error) bool {
	return errors.Is(err, ort.ErrOutOfMemory) || errors.Is(err, gpu.ErrOutOfMemory)
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

// Interrupted reports whether the user has ended the command, which is no error to the user, and nothing else has happened.
func Interrupted(err error) bool {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return Interrupted(e.Unwrap())
	case interface{ Unwrap() []error }:
		return !slices.ContainsFunc(e.Unwrap(), func(err error) bool { return !Interrupted(err) })
	}
	return err == train.ErrInterrupted
}

// Code returns the exit status of an error: 0 for nil; 2 for an error before the first step, but for one of the disk; 3 out of memory, or a
// memory limit that is too small; 4 a plugin keeps crashing or failing, or violated the protocol; 5 too many unusable
// rows; 130 interrupted, with a checkpoint saved; 1 any other error, such as a failed write or a loss that is not
// finite.
func Code(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, train.ErrInterrupted):
		return 130
	case OutOfMemory(err):
		return 3
	case errors.Is(err, supervise.ErrCrashLoop), errors.Is(err, supervise.ErrFailed), errors.Is(err, supervise.ErrViolation), errors.Is(err, supervise.ErrChanged):
		return 4
	case errors.Is(err, batch.ErrQuarantine):
		return 5
	case IsRefusal(err) && !files.Failed(err):
		return 2
	}
	return 1
}
