package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/release"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/ranks/launch"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/settings/place"
)

func newTrain(name string) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: "Train a model", Args: noArguments}
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		set.Version = release.Version()
		return trainRank(cmd.Context(), set)
	})
}

// trainRank trains as the rank that a launcher has started, or with a list of GPUs as the first rank of this machine,
// whose others it starts.
func trainRank(ctx context.Context, set *config.Set) error {
	rank, err := launch.Find(os.Getenv)
	if err != nil {
		return err
	}
	os.Unsetenv(launch.SecretVariable) // plugins need not know it
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var others *launch.Children
	if n := len(place.ModelGPUs(string(set.ModelGPU))); rank.Alone() && n > 1 && !set.PrintConfig() {
		program, err := os.Executable()
		if err != nil {
			return err
		}
		if rank, others, err = launch.Start(n, program, os.Args[1:], cancel); err != nil {
			return err
		}
	}
	err = run.TrainAs(ctx, set, openConsole(), rank)
	// Several processes write to one terminal.
	if own := fmt.Sprint("rank ", rank.Rank); err != nil && !rank.Leads() && !strings.HasPrefix(err.Error(), own) {
		err = fmt.Errorf("%s: %w", own, err)
	}
	return errors.Join(err, others.Wait())
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
