package cli

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host"
	"github.com/xtts-host/xtts-host/host/config"
)

func newTrain(name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: "Train a model", Args: noArguments}
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		return host.Run(cmd.Context(), set, console())
	})
}

// console is standard output and error. The first signal stops the run in order, the second at once.
func console() host.Console {
	stop := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		close(stop)
		<-signals
		// Plugins see the end of the host by themselves, and every checkpoint on the disk is whole.
		fmt.Fprintln(os.Stderr, "error: stopped at once; what was trained since the last checkpoint is lost")
		os.Exit(1)
	}()
	return host.Console{Out: os.Stdout, Err: os.Stderr, Terminal: terminal(os.Stdout), ErrTerminal: terminal(os.Stderr), Stop: stop}
}

// terminal reports whether a bar can be drawn on f: it is a terminal that can move its cursor and knows its width.
func terminal(f *os.File) bool {
	if os.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}
