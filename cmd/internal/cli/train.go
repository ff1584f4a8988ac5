package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newTrain(name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: "Train a model", Args: noArguments}
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		set.Version = version()
		return run.Train(cmd.Context(), set, openConsole())
	})
}

// openConsole returns standard output and error. The first signal stops the run in order, a later one at once.
func openConsole() console.Console {
	r := catch(func() { stopAtOnce("; the steps after the last checkpoint are lost") })
	return console.Console{
		Out: visible.NewWriter(os.Stdout), Err: visible.NewWriter(os.Stderr), Terminal: terminal(os.Stdout),
		ErrTerminal: terminal(os.Stderr), Stop: r.stop, Save: r.save, Width: func() int { return columns(os.Stdout) },
		ErrWidth: func() int { return columns(os.Stderr) },
	}
}
