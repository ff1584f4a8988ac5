package cli

import (
	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/replay"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// replayed are the settings that a replay may replace: they change no number of it.
var replayed = []string{
	"plugins", "num-workers", "plugin-workers", "buffer-size", "device", "threads", "ort-lib", "cache-dir", "data-gpu",
	"model-gpu", "feature-cache",
}

func newReplay() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "replay RUN --step N",
		SuggestFor: []string{"repeat", "step", "debug"},
		Short:      "Make a step of a run again, and write its batch and its gradients",
		Long: `Trains from the nearest checkpoint that the run has kept, or from its first weights, up to the
step, and compares loss and gradient norm of every step with the run's. Then it writes a new folder
with the batch of the step, its clips and draws, the weights before it, and its gradients, which
PyTorch can load (docs/step.md). The folder of the run is only read, also while the run goes on.`,
		Example: `xtts-host replay runs/first --step 57
xtts-host replay runs/first --step 57 --out step-57`,
	}
	set := config.New()
	set.ResumeFlag = "replay"
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage(cmd, hint.Errorf("for example: "+hint.Command("replay runs/first --step 57"),
				"it takes one argument: the folder of a run"))
		}
		set.Resume = args[0]
		return nil
	}
	var options replay.Options
	cmd.Flags().Int64Var(&options.Step, "step", 0, "`number` of the step, as metrics.jsonl counts: from 1")
	cmd.Flags().StringVar(&options.Out, "out", "",
		"new `folder` to write; without it RUN-step-N in the working directory")
	return withSet(cmd, set, replayed, func(cmd *cobra.Command, set *config.Set, _ []string) error {
		if options.Step < 1 {
			return usage(cmd, hint.Errorf("for example: --step 57", "--step names the step to replay, from 1"))
		}
		return replay.Run(cmd.Context(), set, options, openConsole())
	})
}
