package cli

import (
	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/view"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newView() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "view [RUN...]",
		SuggestFor: []string{"dashboard", "watch", "serve", "ui", "board", "browse"},
		Short:      "Serve a page about runs: curves, speech, clips, log",
		Long: `Serves a page about runs, for a browser: curves, what evaluations have spoken, clips that cannot be
used, the log, and a box that speaks a sentence with a checkpoint. RUN is the folder of a run, also
of one that trains now, or a folder with runs (default: runs). The page is on this machine alone and
asks for nothing elsewhere (docs/dashboard.md). Ctrl-C ends it.`,
		Example: `xtts-host view runs/first
xtts-host view runs --address 127.0.0.1:9000`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeFolders,
	}
	at := cmd.Flags().String("address", view.Flag.Example, "`address` at which the page is served (docs/dashboard.md)")
	return withSome(cmd, []string{}, func(_ *cobra.Command, _ *config.Set, args []string) error {
		if len(args) == 0 {
			args = []string{"runs"}
		}
		c := openConsole()
		return view.Run(c.Out, args, *at, c.Stop)
	})
}
