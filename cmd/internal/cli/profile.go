package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/profile"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newProfile() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "profile",
		Short: "Find what limits the speed of a run, and what a change would gain",
		Long: `Measures where the time of the steps of a run with these flags goes, names what limits it, and
predicts what each change would gain. It also measures what perfect input would give. Without
--train-data it makes clips. It leaves no run folder.

With --apply it then tries the changes in short runs, and writes the settings of the fastest one
to a file for --config.`,
		Example: `xtts-host profile --train-data LJSpeech-1.1 --batch-size 32
xtts-host profile --num-steps 50 --json > profile.json
xtts-host profile --train-data LJSpeech-1.1 --apply fast.yaml --budget 5m`,
		Args: noArguments,
	}
	o := profile.Options{}
	f := cmd.Flags()
	f.IntVar(&o.Steps, "num-steps", 100, "`steps` of each run, at least 10")
	f.StringVar(&o.Apply, "apply", "", "try changes, and write the settings of the fastest run to this `file`")
	f.DurationVar(&o.Budget, "budget", 2*time.Minute, "`time` for the runs that try changes, such as 90s or 5m")
	f.BoolVar(&o.ChangeBatch, "change-batch", false, "try larger batches, too: they change what is trained")
	asJSON := jsonFlag(cmd)
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		o.JSON, o.Limited = *asJSON, cmd.Flags().Changed("budget")
		return profile.Run(cmd.Context(), set, o, openConsole())
	})
}
