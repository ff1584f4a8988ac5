package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// ask asks on the terminal, and returns what read returns. A signal to stop ends the wait, which no signal does for the
// read itself. The question is not folded: a writer that folds would wait for the end of its line.
func ask[T any](ctx context.Context, question string, read func() (T, error)) (none T, err error) {
	visible.Fprintf(os.Stderr, "%s", question)
	var answer T
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		answer, failed = read()
	}()
	select {
	case <-done:
		return answer, failed
	case <-ctx.Done():
		fmt.Fprintln(os.Stderr)
		return none, exit.ErrInterrupted
	}
}

// askYes asks on the terminal. The end of the input is a no.
func askYes(ctx context.Context, question string) (bool, error) {
	return ask(ctx, question+" [y/N] ", func() (bool, error) {
		line, err := bufio.NewReader(os.Stdin).ReadString('\n')
		if err != nil && line == "" {
			fmt.Fprintln(os.Stderr)
		}
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes", nil
	})
}

// askPassword asks for a password on the terminal, and shows nothing of it.
func askPassword(prompt string) (string, error) {
	in := int(os.Stdin.Fd())
	before, err := term.GetState(in)
	if err != nil {
		return "", exit.Usage(errors.New("a password is needed, and there is no terminal to ask on"),
			"use a key that "+hint.Command("plugins key --no-password")+" has made")
	}
	ctx, stop := interruptible(context.Background())
	defer stop()
	word, err := ask(ctx, prompt+": ", func() ([]byte, error) { return term.ReadPassword(in) })
	if errors.Is(err, exit.ErrInterrupted) {
		_ = term.Restore(in, before) // the read, which goes on, has switched the echo off
		return "", err
	}
	fmt.Fprintln(os.Stderr)
	return string(word), err
}
