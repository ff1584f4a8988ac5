package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/runs"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newRunsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "list [FOLDER...]",
		SuggestFor: []string{"ls"},
		Short:      "List runs: state, steps, losses, speed, time and size",
		Long: `Lists the runs in each FOLDER (default: runs), the oldest first: the time of the last write, the
state (docs/runs.md#states), the steps, the first and the last training loss, the best evaluation
(its loss, or the measure of --best-by), the speed, the wall time, and the size on the disk. A run
is unfinished if its last step has no report: it still trains, or was killed.`,
		Example: `xtts-host runs list
xtts-host runs list runs /data/old-runs --json > runs.json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeFolders,
	}
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{}, func(_ *cobra.Command, _ *config.Set, args []string) error {
		if len(args) == 0 {
			args = []string{"runs"}
		}
		return runs.List(os.Stdout, args, *asJSON, columns(os.Stdout))
	})
}
