package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/compare"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newCompare() *cobra.Command {
	var o compare.Options
	cmd := &cobra.Command{
		Use:        "compare RUN...",
		SuggestFor: []string{"diff"},
		Short:      "Compare runs with a baseline: speed, losses, memory, speech",
		Long: `Compares runs with the first one, or with --baseline: steps per minute and frames per second with
confidence intervals, step times, utilization, memory, losses at equal steps and at equal time, and
measures of speech at the last and the best evaluation. It lists the settings that differ, and what
makes the runs not comparable. If exactly one setting differs, such as the batch size or a memory
limit, a table shows the figures for each of its values. --out writes a page with curves and audio
samples.`,
		Example: `xtts-host compare runs/first runs/second
xtts-host compare runs/batch-* --baseline runs/batch-8 --out batches.html
xtts-host compare runs/first runs/second --json > comparison.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && o.Baseline == "" {
				return usage(cmd, hint.Errorf("for example: "+hint.Command("compare runs/first runs/second"),
					"a comparison needs two runs"))
			}
			return nil
		},
		ValidArgsFunction: completeFolders,
	}
	cmd.Flags().StringVar(&o.Baseline, "baseline", "", "`folder` of the run that the others are compared with "+
		"(default: the first)")
	cmd.Flags().StringVar(&o.File, "out", "", "`file` of the HTML page, such as comparison.html")
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{}, func(_ *cobra.Command, _ *config.Set, args []string) error {
		o.Runs, o.JSON, o.Width = args, *asJSON, columns(os.Stdout)
		return compare.Run(os.Stdout, o)
	})
}
