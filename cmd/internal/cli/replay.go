package cli

import (
	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/replay"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// replayed are the settings that a replay may replace: they change no number of it.
var replayed = []string{
	"plugins", "num-workers", "plugin-workers", "plugin-data", "buffer-size", "device", "threads", "ort-lib",
	"cache-dir", "data-gpu", "model-gpu", "feature-cache", "sandbox",
}

func newReplay() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "replay RUN --step N",
		SuggestFor: []string{"repeat", "step", "debug"},
		Short:      "Replay a step of a run, and write its batch and its gradients",
		Long: `Trains from the nearest earlier checkpoint of the run, or from its initial weights, up to the step,
and compares each step with the line of the run in metrics.jsonl. Then it writes a new folder with
the batch, the clips and the gradients of the step, and the weights before and after it. PyTorch
can load these files (docs/step.md). The run folder is only read, so the run may be training.`,
		Example: `xtts-host replay runs/first --step 57
xtts-host replay runs/first --step 57 --out step-57`,
	}
	set := config.New()
	set.ResumeFlag = "replay"
	one := oneArgument("the folder of a run", "replay runs/first --step 57")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := one(cmd, args); err != nil {
			return err
		}
		set.Resume = args[0]
		return nil
	}
	var options replay.Options
	cmd.Flags().Int64Var(&options.Step, "step", 0, "`number` of the step in metrics.jsonl, from 1")
	cmd.Flags().StringVar(&options.Out, "out", "",
		"new `folder` for the files (default: RUN-step-N in the working directory)")
	return withSet(cmd, set, replayed, func(cmd *cobra.Command, set *config.Set, _ []string) error {
		if options.Step < 1 {
			return usage(cmd, hint.Errorf("for example: --step 57",
				"--step must be the number of a step, from 1"))
		}
		return replay.Run(cmd.Context(), set, options, openConsole())
	})
}
