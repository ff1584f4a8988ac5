package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/release"
	"github.com/xtts-host/xtts-host/host/command/doctor"
	"github.com/xtts-host/xtts-host/host/command/probe"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newDoctor() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether this machine can train with these flags",
		Long: `Checks driver, libraries, GPUs and limits of this machine, and every setting of a run with these
flags: its files, data, plugins, buffers. It starts no training and no plugin.`,
		Example: `xtts-host doctor
xtts-host doctor --data-gpu 0 --model-gpu 1
xtts-host doctor --json > doctor.json`,
		Args: noArguments,
	}
	asJSON := jsonFlag(cmd)
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		return doctor.Run(cmd.Context(), output(*asJSON), set, release.Version(), *asJSON)
	})
}

// newProbe is a process that doctor or validate starts for what could crash.
func newProbe() *cobra.Command {
	return &cobra.Command{
		Use:    "probe NAME ARGUMENT",
		Short:  "Do a part of doctor or validate in a process of its own",
		Hidden: true,
		Args: func(cmd *cobra.Command, args []string) error {
			return exit.Refused(cobra.ExactArgs(2)(cmd, args))
		},
		RunE: func(_ *cobra.Command, args []string) error { return probe.Serve(os.Stdout, args[0], args[1]) },
	}
}
