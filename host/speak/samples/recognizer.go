package samples

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/xtts-host/xtts-host/shared/hint"
)

// Recognizer is a command that prints the text of a sound.
type Recognizer struct {
	words   []string
	timeout time.Duration
}

// placeholder is where the path of the sound goes.
const placeholder = "{wav}"

// mostHeard bounds what a recognizer may print, in bytes.
const mostHeard = 1 << 20

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
		return nil, hint.Errorf(`for example: --recognizer "transcribe {wav}"`, "the command has no %s, where the path "+
			"of the sound goes", placeholder)
	}
	return &Recognizer{words, time.Minute}, nil
}

// recognize returns what the command prints for a file. It is run without a shell.
func (r *Recognizer) recognize(ctx context.Context, path string) (string, error) {
	var words []string
	for _, w := range r.words {
		words = append(words, strings.ReplaceAll(w, placeholder, path))
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = time.Second // for what it has started
	out, err := cmd.Output()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return "", fmt.Errorf("%s took more than %v", words[0], r.timeout)
	case err != nil:
		if failed, ok := errors.AsType[*exec.ExitError](err); ok && len(failed.Stderr) > 0 {
			err = fmt.Errorf("%w: %.200s", err, strings.TrimSpace(string(failed.Stderr)))
		}
		return "", err
	case len(out) > mostHeard:
		return "", fmt.Errorf("%s printed %d bytes", words[0], len(out))
	}
	return string(out), nil
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
