package cli

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/console"
)

func newTrain(name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: "Train a model", Args: noArguments}
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		return host.Run(cmd.Context(), set, openConsole())
	})
}

// openConsole returns standard output and error. The first signal stops the run in order, a later one at once.
func openConsole() console.Console {
	r := catch(stopAtOnce)
	return console.Console{
		Out: os.Stdout, Err: os.Stderr, Terminal: terminal(os.Stdout), ErrTerminal: terminal(os.Stderr), Stop: r.stop, Save: r.save,
	}
}

// terminal reports whether a bar can be drawn on f: it is a terminal that can move its cursor and knows its width.
func terminal(f *os.File) bool {
	if os.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}
