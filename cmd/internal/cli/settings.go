package cli

import (
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/files"
	"github.com/xtts-host/xtts-host/host/observe/console"
	"github.com/xtts-host/xtts-host/host/run"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// groupAnnotation of a flag is its title in the help.
const groupAnnotation = "xtts-host-group"

// withSettings gives a command every setting of a run as a flag, and runs it with all of them filled in. With
// --print-config it prints them instead.
func withSettings(cmd *cobra.Command, do func(*cobra.Command, *config.Set) error) *cobra.Command {
	return withSome(cmd, nil, func(cmd *cobra.Command, set *config.Set, _ []string) error {
		if set.PrintConfig() { // no signal needs to be caught for that
			return run.Train(cmd.Context(), set, console.Console{Out: os.Stdout, Err: os.Stderr})
		}
		return do(cmd, set)
	})
}

// withSome gives a command the named settings as flags, or all when there are no names.
func withSome(
	cmd *cobra.Command, names []string, run func(*cobra.Command, *config.Set, []string) error,
) *cobra.Command {
	return withSet(cmd, config.New(), names, run)
}

// withSet is withSome for settings of the caller.
func withSet(
	cmd *cobra.Command, set *config.Set, names []string, run func(*cobra.Command, *config.Set, []string) error,
) *cobra.Command {
	flags := cmd.Flags()
	flags.SortFlags = false
	if names != nil { // each command reads files
		names = append(slices.Clone(names), "disk-wait")
	}
	set.Only = names
	for _, g := range set.Groups() {
		g.Flags.VisitAll(func(f *pflag.Flag) {
			if names == nil {
				f.Annotations = map[string][]string{groupAnnotation: {g.Title}}
			} else if !slices.Contains(names, f.Name) {
				return
			}
			flags.AddFlag(f)
		})
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		patience := func() *files.Patience { return console.Console{Err: folded(os.Stderr)}.Patience(set.DiskWait) }
		defer files.WaitWith(patience())()
		if err := set.Load(os.Environ()); err != nil {
			return usage(cmd, err)
		}
		defer files.WaitWith(patience())() // the environment and the file may have said how long
		if err := checkPlaces(cmd, set, args); err != nil {
			return usage(cmd, err)
		}
		return run(cmd, set, args)
	}
	complete(cmd, set)
	return cmd
}

// jsonFlag gives a command the flag --json.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "write one JSON object to the standard output")
}
