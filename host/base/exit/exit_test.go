package exit_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/xtts-host/xtts-host/gpu"
	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/data/batch"
	"github.com/xtts-host/xtts-host/host/stages/supervise"
	"github.com/xtts-host/xtts-host/host/train"
	"github.com/xtts-host/xtts-host/ortgraphs/ort"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func TestCode(t *testing.T) {
	wrap := func(err error) error { return fmt.Errorf("step 3: %w", err) }
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"done", nil, 0},
		{"a file", wrap(fs.ErrPermission), 1},
		{"cancelled", context.Canceled, 1},
		{"not finite", wrap(train.ErrNotFinite), 1},
		{"refused", exit.Refused(errors.New("no bundle")), 2},
		{"refused, wrapped", wrap(exit.Refused(errors.New("no bundle"))), 2},
		{"usage", exit.Usage(errors.New("unknown flag"), "--help"), 2},
		{"out of memory", wrap(ort.ErrOutOfMemory), 3},
		{"out of memory before the first step", exit.Refused(wrap(ort.ErrOutOfMemory)), 3},
		{"out of memory of the GPU before the first step", exit.Refused(wrap(gpu.ErrOutOfMemory)), 3},
		{"crash loop", wrap(supervise.ErrCrashLoop), 4},
		{"crash loop before the first step", exit.Refused(wrap(supervise.ErrCrashLoop)), 4},
		{"quarantine", hint.Errorf("fix", "%w: 7", batch.ErrQuarantine), 5},
		{"interrupted", wrap(exit.ErrInterrupted), 130},
		{"interrupted before the first step", exit.Refused(wrap(exit.ErrInterrupted)), 130},
		{
			"interrupted, and the checkpoint failed",
			fmt.Errorf("%w (after: %v)", errors.New("disk full"), exit.ErrInterrupted), 1,
		},
	} {
		if got := exit.Code(tt.err); got != tt.want {
			t.Errorf("%s: exit status %d, want %d", tt.name, got, tt.want)
		}
	}
}

func TestHint(t *testing.T) {
	inner := hint.Errorf("inner", "no file")
	for _, tt := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("no hint"), ""},
		{inner, "inner"},
		{fmt.Errorf("run: %w", exit.Refused(inner)), "inner"},
		{exit.Usage(errors.New("unknown flag"), "--help"), "--help"},
		{hint.Errorf("outer", "run: %w", inner), "outer"},
		{errors.Join(errors.New("first"), inner), "inner"},
		{
			fmt.Errorf("step 3: %w", ort.ErrOutOfMemory),
			"try a smaller --batch-size, then a smaller --buffer-size, then --accumulate",
		},
		{
			fmt.Errorf("model: %w", gpu.ErrOutOfMemory),
			"try a smaller --batch-size, then a smaller --buffer-size, then --accumulate",
		},
		{hint.Errorf("less", "step 3: %w", ort.ErrOutOfMemory), "less"},
	} {
		if got := exit.Hint(tt.err); got != tt.want {
			t.Errorf("%v: hint %q, want %q", tt.err, got, tt.want)
		}
	}
}

func TestTextIsCut(t *testing.T) {
	for text, want := range map[string]string{
		"short\nline":                     `short\nline`,
		"a  " + strings.Repeat("é", 1500): "a  " + strings.Repeat("é", 998) + "... and 1003 bytes more",
		"x" + strings.Repeat("é", 1000):   "x" + strings.Repeat("é", 999) + "... and 1 bytes more",
	} {
		if got := exit.Text(errors.New(text)); got != want {
			t.Errorf("%.40q: got %q", text, got)
		}
	}
}

// TestInterrupted: an interrupt is no error unless something else has failed, too.
func TestInterrupted(t *testing.T) {
	interrupted := fmt.Errorf("read the data: %w", exit.ErrInterrupted)
	for _, c := range []struct {
		err  error
		want bool
	}{
		{interrupted, true}, {exit.Refused(interrupted), true}, {hint.Errorf("continue", "%w", interrupted), true},
		{errors.Join(interrupted, exit.ErrInterrupted), true},
		{errors.Join(interrupted, errors.New("disk full")), false}, {errors.New("interrupted"), false}, {nil, false},
	} {
		if got := exit.Interrupted(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
