package cli

import (
	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/release"
	"github.com/xtts-host/xtts-host/host/command/validate"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newValidate() *cobra.Command {
	cmd := &cobra.Command{
		Use:        "validate",
		SuggestFor: []string{"check", "dry-run"},
		Short:      "Try each part of a run: settings, model, transfer, three steps",
		Long: `Tries each part of the run that these flags set up, with up to three training steps, and prints what
works and what does not. It leaves no run folder. It exits with the status of training.`,
		Example: `xtts-host validate --train-data LJSpeech-1.1 --batch-size 32
xtts-host validate --resume runs/first --json > report.json`,
		Args: noArguments,
	}
	asJSON := jsonFlag(cmd)
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		c := openConsole()
		c.Out = output(*asJSON)
		return validate.Run(cmd.Context(), set, release.Version(), *asJSON, c)
	})
}
