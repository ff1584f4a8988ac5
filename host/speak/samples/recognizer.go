package samples

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Recognizer is a command that transcribes an audio file.
type Recognizer struct {
	words   []string
	timeout time.Duration
}

// placeholder stands for the path of the audio file.
const placeholder = "{wav}"

// mostPrinted bounds what a recognizer may print, in bytes.
const mostPrinted = 1 << 20

// NewRecognizer divides a command into words as a shell does, with quotes and backslashes, but expands nothing. An
// empty command is nil.
func NewRecognizer(command string) (*Recognizer, error) {
	if command == "" {
		return nil, nil
	}
	words, err := split(command)
	if err != nil {
		return nil, err
	}
	if !strings.Contains(strings.Join(words, " "), placeholder) {
		return nil, hint.Errorf(`for example: --recognizer "transcribe {wav}"`, "the command has no %s, which stands for "+
			"the path of the audio file", placeholder)
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, hint.Errorf("install it, give its full path, or use none: --recognizer ''",
			"the command cannot be run: %w", err)
	}
	return &Recognizer{words, time.Minute}, nil
}

// errSlow says that a command took longer than it may.
var errSlow = errors.New("it took too long")

// errLong says that a command printed more than it may.
var errLong = fmt.Errorf("it printed more than %d bytes", mostPrinted)

// recognize returns what the command prints for a file. It is run without a shell, in a process group of its own, all
// of which ends with it if it fails. The error of one that takes too long is an errSlow.
func (r *Recognizer) recognize(ctx context.Context, path string) (string, error) {
	var words []string
	for _, w := range r.words {
		words = append(words, strings.ReplaceAll(w, placeholder, path))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, end := context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("%w: more than %v", errSlow, r.timeout))
	defer end()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	printed := &limited{limit: mostPrinted, over: func() { cancel(errLong) }}
	said := &limited{limit: mostSaid, over: func() {}}
	cmd.Stdout, cmd.Stderr = printed, said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second // for a process that has left the group, and holds the pipes
	err := cmd.Run()
	if err != nil && cmd.Process != nil {
		_ = cmd.Cancel() // what it has started
	}
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("%s: %w", words[0], context.Cause(ctx))
	case err != nil:
		if text := strings.TrimSpace(said.kept.String()); text != "" {
			err = fmt.Errorf("%w: %s", err, text)
		}
		return "", err
	}
	return printed.kept.String(), nil
}

// mostSaid bounds what is kept of the messages of a recognizer, in bytes.
const mostSaid = 200

// limited keeps the first bytes that are written to it, and calls over when there are more.
type limited struct {
	kept  bytes.Buffer // no embedded one: io.Copy would read into that without a limit
	limit int
	over  func()
}

func (l *limited) Write(text []byte) (int, error) {
	keep := min(len(text), l.limit-l.kept.Len())
	if l.kept.Write(text[:keep]); keep < len(text) {
		l.over()
	}
	return len(text), nil
}

// split divides a command into words.
func split(command string) (words []string, err error) {
	var word strings.Builder
	begun, quote, escaped := false, rune(0), false
	for _, r := range command {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			begun, escaped = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			begun, quote = true, r
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 || escaped {
		return nil, hint.Errorf("close the quotes", "the command ends within quotes, or after a backslash: %s", command)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
