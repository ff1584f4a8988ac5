package supervise

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrLost says that the process that served the call is gone. The slot's content is undefined; build it again and
	// call again: another process serves it.
	ErrLost = errors.New("process lost")
	// ErrFailed says that the stage answered the call with an error. The process goes on.
	ErrFailed = errors.New("failed")
	// ErrCrashLoop says that the plugin was restarted too often: as RestartPolicy has it, and then the pool has failed for
	// good, or as the caller has it, see CrashLoop.
	ErrCrashLoop = errors.New("it keeps crashing")
	// ErrClosed says that the pool accepts no more calls.
	ErrClosed = errors.New("plugin pool is closed")
)

// PluginError is what went wrong with a plugin. It wraps one of the errors above, or the reason why a process could not
// be started.
type PluginError struct {
	Plugin string // id
	// Exit is how the process ended, as "exit status 3" or "signal: killed"; empty when it did not run or still runs.
	Exit string
	// LastStderr holds the last lines that the process wrote to its standard error, at most 8 KiB.
	LastStderr string
	// Kicked says that the process was ended by Kick or KickAll: what it was working on is not the reason.
	Kicked bool
	Err    error

	hint string
	lost bool // Is(ErrLost), beside what Err says
}

// shownLines of the last stderr lines stand in the error's text.
const shownLines = 10

// Error names the plugin and the reason, and quotes the last lines of its standard error.
func (e *PluginError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plugin %s: %v", e.Plugin, e.Err)
	if text := strings.TrimRight(e.LastStderr, "\n"); text != "" {
		lines := strings.Split(text, "\n")
		b.WriteString("\nits last lines on stderr:")
		for _, l := range lines[max(0, len(lines)-shownLines):] {
			b.WriteString("\n  " + l)
		}
	}
	return b.String()
}

func (e *PluginError) Unwrap() error { return e.Err }

// The next steps for people, by what went wrong.
const (
	startHint     = "install the plugin again, or leave its stages out of the pipeline"
	startLateHint = "if it needs that long, allow more with --plugin-start-timeout SECONDS"
	protocolHint  = "install a build of the plugin for this host's protocol (docs/plugin-protocol.md)"
	versionHint   = "build the program and its plugin.json from one source"
	crashHint     = "mend the plugin: docs/plugins.md, Test, runs a stage by itself"
	lateHint      = "if a batch may take that long, allow more with --plugin-timeout SECONDS"
	rulesHint     = "docs/plugin-protocol.md has the rules that a plugin keeps to"
)

// splitHint takes the plugin's own hint off its message: a last line "hint: ...".
func splitHint(text string) (message, hint string) {
	if i := strings.LastIndex(text, "\nhint: "); i >= 0 && !strings.Contains(text[i+1:], "\n") {
		return text[:i], strings.TrimSpace(text[i+len("\nhint: "):])
	}
	return text, ""
}

// CrashLoop is the error, wrapping ErrCrashLoop, of a caller that gives a plugin up. loop says what happened too often. last is
// its latest occurrence: of a *PluginError the result keeps how the process ended, its last lines and the hint; anything
// else is taken for a breach of the protocol.
func CrashLoop(plugin, loop string, last error) *PluginError {
	e := &PluginError{Plugin: plugin, hint: rulesHint}
	why := last.Error()
	var lost *PluginError
	if errors.As(last, &lost) {
		e.Exit, e.LastStderr, e.hint, why = lost.Exit, lost.LastStderr, lost.hint, lost.Err.Error()
	}
	e.Err = fmt.Errorf("%w: %s; the last time: %s", ErrCrashLoop, loop, strings.TrimPrefix(why, ErrLost.Error()+": "))
	return e
}

// Is tells a start that failed because the process was lost from one that the plugin refused.
func (e *PluginError) Is(target error) bool { return e.lost && target == ErrLost }

// Hint is the next step, for the command line, or empty.
func (e *PluginError) Hint() string { return e.hint }
