package cli

import (
	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/report"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newReport() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "report RUN",
		SuggestFor: []string{"show", "html"},
		Short:      "Write the page of a run: verdict, curves, audio samples",
		Long: `Writes report.html, a page about a run in one file: verdict, curves, audio samples, times, memory,
unusable clips, settings. Each run writes this page at its end. This command writes it again, also
for a run that is still training or was killed. The page needs no network and has no script.`,
		Example: `xtts-host report runs/first
xtts-host report runs/first --out first.html`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, hint.Errorf("for example: "+hint.Command("report runs/first"),
					"RUN is missing: the folder of a run"))
			}
			return noArguments(cmd, args[1:])
		},
		ValidArgsFunction: firstArgument(completeFolders),
	}
	file := cmd.Flags().String("out", "", "`file` of the page (default: report.html in the folder of the run)")
	return withSome(cmd, []string{}, func(_ *cobra.Command, _ *config.Set, args []string) error {
		return report.Run(output(false), args[0], *file)
	})
}
