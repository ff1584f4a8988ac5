package cli

import (
	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/evaluate"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// evaluated are the settings that an evaluation may replace: they change no number of it but the data, and what allow
// names.
var evaluated = []string{
	"allow", "val-data", "plugins", "num-workers", "plugin-workers", "plugin-data", "buffer-size", "max-quarantine",
	"sandbox", "device", "threads", "ort-lib", "cache-dir", "data-gpu", "model-gpu",
}

func newEvaluate() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "evaluate --run RUN",
		SuggestFor: []string{"eval", "test"},
		Short:      "Measure the loss of a checkpoint on validation data",
		Long: `Evaluates a checkpoint of a run with the run's bundle, plugins and settings, as the run does it, and
prints loss and metrics. It trains nothing and writes nothing into the run's folder. The checkpoint
is the newest of the run, or RUN@best, RUN@last or RUN@1200 name one.`,
		Example: `xtts-host evaluate --run runs/first@best
xtts-host evaluate --run runs/first@1200 --val-data other-voice --json > loss.json`,
		Args: noArguments,
	}
	set := config.New()
	set.ResumeFlag = "--run"
	cmd.Flags().StringVar(&set.Resume, "run", "", "`folder` of the run, or FOLDER@best, FOLDER@last or FOLDER@1200")
	asJSON := jsonFlag(cmd)
	return withSet(cmd, set, evaluated, func(cmd *cobra.Command, set *config.Set, _ []string) error {
		if set.Resume == "" {
			return usage(cmd, hint.Errorf("for example: "+hint.Command("evaluate --run runs/first@best"),
				"--run is missing: the folder of a run"))
		}
		c := openConsole()
		c.Out = output(*asJSON)
		return evaluate.Run(cmd.Context(), set, *asJSON, c)
	})
}
