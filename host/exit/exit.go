// Package exit says how a command of the program ends: the exit status of an error, its text for people and what it suggests
// to do next.
package exit

import (
	"errors"
	"fmt"
	"strings"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/batch"
	"github.com/xtts-host/xtts-host/host/supervise"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// refusal marks what is wrong before the first step.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

// Refused marks an error as what is wrong before the first step. Nil stays nil.
func Refused(err error) error {
	if err == nil {
		return nil
	}
	return refusal{err}
}

// IsRefusal reports whether an error was marked so.
func IsRefusal(err error) bool {
	_, ok := errors.AsType[refusal](err)
	return ok
}

// Hint returns what an error suggests to do next, or "".
func Hint(err error) string {
	if h := hint.Of(err); h != "" {
		return h
	}
	switch {
	case OutOfMemory(err):
		return "try a smaller --batch-size, then a smaller --buffer-size, then --accumulate"
	case errors.Is(err, train.ErrNotFinite):
		return "try a smaller --lr, a longer --warmup-steps or a smaller --grad-clip, and listen to the rows of the skipped steps"
	}
	return ""
}

// OutOfMemory reports that ONNX Runtime or the driver has found no memory.
func OutOfMemory(err error) bool {
	return errors.Is(err, ort.ErrOutOfMemory) || errors.Is(err, gpu.ErrOutOfMemory)
}

// maxLine is how many bytes of a line of a message are shown.
const maxLine = 2000

// Text returns an error's message for people. Its lines are cut where a stranger's file has put too much into them.
func Text(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		if len(line) > maxLine {
			lines[i] = strings.ToValidUTF8(line[:maxLine], "") + fmt.Sprintf("... and %d bytes more", len(line)-maxLine)
		}
	}
	return strings.Join(lines, "\n")
}

// Usage marks an error of the command line, with the next step.
func Usage(err error, advice string) error { return Refused(hint.Errorf(advice, "%w", err)) }

// Advise adds the next step to an error that names none of its own.
func Advise(err error, advice string) error {
	if err == nil || Hint(err) != "" {
		return err
	}
	return hint.Errorf(advice, "%w", err)
}

// Code is the exit status for what a command returned: 0 done; 1 input or output failed, or training did not stay finite;
// 2 refused before the first step; 3 out of memory; 4 a plugin keeps crashing or failing, or broke the protocol; 5 too many unusable rows;
// 130 interrupted, with a checkpoint saved.
func Code(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, train.ErrInterrupted):
		return 130
	case OutOfMemory(err):
		return 3
	case errors.Is(err, supervise.ErrCrashLoop), errors.Is(err, supervise.ErrFailed), errors.Is(err, supervise.ErrViolation):
		return 4
	case errors.Is(err, batch.ErrQuarantine):
		return 5
	case IsRefusal(err):
		return 2
	}
	return 1
}
