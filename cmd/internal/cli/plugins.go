package cli

import (
	"encoding/json"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/inspect"
	"github.com/xtts-host/xtts-host/host/plugintest"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [FOLDER]",
		Short: "List the plugins of a folder, with their stages and faults",
		Long: `Lists the plugins in FOLDER (default: XTTS_HOST_PLUGINS, or plugins), with their versions and
stages, and the reason if a plugin cannot be started. It starts no plugin.`,
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

func newTest() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "test PLUGIN...",
		Short: "Test plugins against the rules of the protocol, without a run",
		Long: `Starts each plugin as a run does, sends batches of noise to each of its stages, and reports which
rules of docs/plugin-protocol.md hold, the time per clip and the memory. PLUGIN is the folder of a
plugin, or its name in the folder of --plugins. The exit status is 4 when a check fails.`,
		Example: `xtts-host plugins test my-plugins/my-plugin
xtts-host plugins test augment --plugins ./plugins --config snr_db_min=5 --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, hint.Errorf("for example: xtts-host plugins test my-plugins/my-plugin", "PLUGIN is missing: the folder or the name of a plugin"))
			}
			return nil
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
	}
	stage := cmd.Flags().String("stage", "", "`name` of the only stage to test")
	values := valuesFlag(cmd)
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{"plugins", "graph", "cache-dir", "ort-lib"}, func(cmd *cobra.Command, set *config.Set, args []string) error {
		given, err := readValues(*values)
		if err != nil {
			return usage(cmd, err)
		}
		return plugintest.Command(cmd.Context(), os.Stdout, plugintest.Options{
			Names: args, Plugins: set.Plugins, Graph: set.Graph, Stage: *stage, CacheDir: set.CacheDir, ORTLib: set.ORTLib, Values: given, JSON: *asJSON,
		})
	})
}

// valuesFlag gives a command the flag --config for the configuration of a stage.
func valuesFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArray("config", nil, "`KEY=VALUE` of the stage's configuration; may be repeated")
}

// readValues reads KEY=VALUE: a value of JSON, or else a string.
func readValues(given []string) (map[string]any, error) {
	values := map[string]any{}
	for _, text := range given {
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" {
			return nil, hint.Errorf("for example: --config max_drive=8", "--config %q is not KEY=VALUE", text)
		}
		var v any
		if err := json.Unmarshal([]byte(value), &v); err != nil {
			v = value
		}
		values[key] = v
	}
	return values, nil
}
