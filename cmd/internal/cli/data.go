package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/datacheck"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newDataCheck() *cobra.Command {
	var o datacheck.Options
	cmd := &cobra.Command{
		Use:        "check DATA",
		SuggestFor: []string{"check"},
		Short:      "Read all clips of a data set, and show what is wrong with it",
		Long: `Reads every clip of a list as a run with this bundle would, and shows what cannot be used and why,
lengths, speakers, and lines that may be mistakes: duplicates, clipping, silence, unknown
characters, text that is too long or too short for its clip. DATA is what --train-data accepts. The
exit status is 5 if more lines cannot be used than a run allows, as that of the run.`,
		Example: `xtts-host data check LJSpeech-1.1
xtts-host data check my-voice --pictures pictures --json > check.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, hint.Errorf("for example: "+hint.Command("data check LJSpeech-1.1"),
					"DATA is missing: a folder, its metadata.csv, or a JSON Lines file"))
			}
			return noArguments(cmd, args[1:])
		},
	}
	cmd.Flags().BoolVar(&o.Eval, "eval", false, "check the list for evaluation, not that for training")
	cmd.Flags().StringVar(&o.Pictures, "pictures", "", "`folder` for histograms as SVG files")
	cmd.Flags().IntVar(&o.Workers, "workers", runtime.GOMAXPROCS(0),
		"`clips` that are decoded at the same time (default: the number of processors)")
	cmd.Flags().Lookup("workers").DefValue = "0" // the help text names it: it depends on the machine
	asJSON := jsonFlag(cmd)
	return withSome(cmd,
		[]string{"graph", "list-layout", "normalize", "val-share", "batch-size", "max-quarantine", "cache-dir"},
		func(cmd *cobra.Command, set *config.Set, args []string) error {
			if o.Workers < 1 {
				return usage(cmd, fmt.Errorf("--workers %d: at least 1 is needed", o.Workers))
			}
			o.Data, o.JSON = args[0], *asJSON
			c := openConsole()
			c.Out = output(o.JSON)
			return datacheck.Run(cmd.Context(), set, o, c)
		})
}
