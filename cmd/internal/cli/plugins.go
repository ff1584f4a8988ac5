package cli

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/inspect"
)

func newList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [FOLDER]",
		Short: "List the plugins of a folder, with their stages and faults",
		Long: `Lists the plugins in FOLDER (default: XTTS_HOST_PLUGINS, or plugins), with their versions and
stages, and why one cannot be started. It starts none.`,
		Example: `xtts-host plugins list
xtts-host plugins list my-plugins --json`,
		Args: func(cmd *cobra.Command, args []string) error { return noArguments(cmd, args[min(1, len(args)):]) },
		ValidArgsFunction: firstArgument(func(string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		}),
	}
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{}, func(_ *cobra.Command, set *config.Set, args []string) error {
		return inspect.Plugins(os.Stdout, append(args, set.Plugins)[0], *asJSON)
	})
}
