package supervise

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/hint"
)

var (
	// ErrLost means that the process that served the call has ended. The slot's content is undefined. Rebuild it and
	// call again: another process serves the call.
	ErrLost = errors.New("process lost")
	// ErrFailed means that the stage answered the call with an error. The process continues.
	ErrFailed = exit.New(exit.StatusPlugin, "failed")
	// ErrCrashLoop means that the plugin was restarted too often, by RestartPolicy or by the caller's own limit
	// (CrashLoop). With RestartPolicy, the pool has failed permanently.
	ErrCrashLoop = exit.New(exit.StatusPlugin, "it keeps crashing")
	// ErrViolation means that a plugin broke a rule of the protocol in a way that the caller does not continue after
	// (Violation).
	ErrViolation = exit.New(exit.StatusPlugin, "it broke the protocol")
	// ErrClosed means that the pool accepts no more calls.
	ErrClosed = errors.New("plugin pool is closed")
	// errUnended means that a process cannot be ended. The pool fails, because no other process may share the ring with
	// it.
	errUnended = errors.New("did not end")
)

// PluginError is a failure of a plugin. It wraps one of the errors above, or the reason why a process could not start.
type PluginError struct {
	Plugin string // id
	// Exit describes how the process ended, such as "exit status 3" or "signal: killed". It is empty if the process did
	// not run or still runs.
	Exit string
	// LastStderr holds the last lines that the process wrote to its standard error, at most 8 KiB.
	LastStderr string
	// Kicked means that Kick or KickAll ended the process, so the batch that it worked on is not the reason.
	Kicked bool
	// Violated means that the host ended the process because what it sent breaks a rule of the protocol.
	Violated bool
	Err      error

	hint    string
	allowed *sandbox.Policy // of a process that was confined, so that the sandbox may be the reason; nil: it was not
	lost    bool            // Is(ErrLost), in addition to Err
}

// shownLines is the number of last stderr lines in the error's text.
const shownLines = 10

// Error names the plugin and the reason, and quotes the last lines of its standard error.
func (e *PluginError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s: %s", e.Plugin, e.reason())
	if lines := e.LastLines(); len(lines) > 0 {
		b.WriteString("\nits last lines on stderr:")
		for _, l := range lines {
			b.WriteString("\n  " + e.Plugin + ": " + l)
		}
	}
	return b.String()
}

// LastLines returns the last lines of the standard error that are shown, the first of them the cause if it is above the
// others.
func (e *PluginError) LastLines() []string {
	text := strings.TrimRight(e.LastStderr, "\n")
	if text == "" {
		return nil
	}
	lines := strings.Split(text, "\n")
	last := lines[max(0, len(lines)-shownLines):]
	cause := summary(text)
	if len(lines) > shownLines && !goDump.MatchString(lines[0]) &&
		!slices.ContainsFunc(last, func(l string) bool { return strings.HasPrefix(cause, l) }) {
		last = append([]string{cause, "..."}, last[2:]...)
	}
	return last
}

// Lines returns the lines of the message (package visible): Error has shown what the plugin wrote as such.
func (e *PluginError) Lines() []string { return strings.Split(e.Error(), "\n") }

// reason is the text of Err, part of which may be the plugin's.
func (e *PluginError) reason() string { return visible.Lines(e.Plugin, e.Err.Error()) }

// Why is the reason without the words for the kind of failure that nearly all have, ErrLost.
func (e *PluginError) Why() string { return strings.TrimPrefix(e.reason(), ErrLost.Error()+": ") }

func (e *PluginError) Unwrap() error { return e.Err }

// Hints by kind of failure.
const (
	startHint     = "fix the plugin or install it again, or leave its stages out of the pipeline"
	filesHint     = "ulimit -n 4096: the host needs some ten open files for each plugin"
	processesHint = "ulimit -u unlimited, or a larger limit of processes of the container (docker run --pids-limit): " +
		"a plugin has some ten threads"
	busyHint      = "another process writes to the program: start again when it is done"
	startLateHint = "if it needs that long, allow more with --plugin-start-timeout SECONDS"
	protocolHint  = "install a build of the plugin for this host's protocol (docs/plugin-protocol.md)"
	olderHint     = "build the program with an SDK of that protocol, or lower \"protocol\" in plugin.json"
	versionHint   = "build the program and its plugin.json from the same source"
	crashHint     = "fix the plugin: docs/plugins.md, Test, shows how to run a stage by itself"
	lateHint      = "if a batch may take that long, allow more with --plugin-timeout SECONDS"
	kernelHint    = "the kernel waits for a device or a file system: see dmesg"
	remainingHint = "end it yourself (kill -9 PROCESS, as its user), then resume; a plugin must not start programs " +
		"of " +
		"other users (setuid)"
	rulesHint = "docs/plugin-protocol.md has the rules for plugins"
)

// splitHint separates the plugin's own hint from its message: a last line "hint: ...". The hint says whose it is.
func (e *PluginError) splitHint(text string) (message, hint string) {
	if i := strings.LastIndex(text, "\nhint: "); i >= 0 && !strings.Contains(text[i+1:], "\n") {
		return text[:i], "plugin " + e.Plugin + ": " + visible.Text(strings.TrimSpace(text[i+len("\nhint: "):]))
	}
	return text, ""
}

// CrashLoop returns the error of a caller that gives a plugin up. It wraps ErrCrashLoop. loop says what happened too
// often. last is its latest occurrence. From a *PluginError, the result takes the exit, the last lines and the hint;
// any other error counts as a protocol violation.
func CrashLoop(plugin, loop string, last error) *PluginError {
	e := &PluginError{Plugin: plugin, hint: rulesHint}
	why := last.Error()
	var lost *PluginError
	if errors.As(last, &lost) {
		e.Exit, e.LastStderr, e.hint, why = lost.Exit, lost.LastStderr, lost.hint, lost.Why()
		e.allowed = lost.allowed
	}
	e.Err = fmt.Errorf("%w: %s; the last time: %s", ErrCrashLoop, loop, why)
	return e
}

// Violation returns the error of a caller that ends the run because a plugin broke a rule. It wraps ErrViolation. Its
// hint is that of the reason, if there is one.
func Violation(plugin string, why error) *PluginError {
	return &PluginError{Plugin: plugin, Err: fmt.Errorf("%w: %w", ErrViolation, why), hint: cmp.Or(hint.Of(why),
		rulesHint)}
}

// Final reports whether an error of Pool.Call says that the pool has failed permanently.
func Final(err error) bool {
	_, ok := errors.AsType[*PluginError](err)
	return ok && !errors.Is(err, ErrLost) && !errors.Is(err, ErrFailed) && !errors.Is(err, ErrClosed)
}

// Is distinguishes a start that failed because the process was lost from one that the plugin refused.
func (e *PluginError) Is(target error) bool { return e.lost && target == ErrLost }

// Hint returns the hint for the command line, or "". If the kernel has refused the plugin something, that is what the
// plugin must declare, after a hint of the plugin's own.
func (e *PluginError) Hint() string {
	if e.allowed == nil {
		return e.hint
	}
	declare, refused := sandbox.Refusal(e.Err.Error()+"\n"+summary(e.LastStderr), *e.allowed)
	switch {
	case !refused:
		return e.hint
	case strings.HasPrefix(e.hint, "plugin "):
		return e.hint + "; " + declare
	}
	return declare
}
