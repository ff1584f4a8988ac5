package cli

import (
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/inspect"
	"github.com/xtts-host/xtts-host/host/command/newplugin"
	"github.com/xtts-host/xtts-host/host/command/plugintest"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newPluginsList() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list [FOLDER]",
		Short: "List the plugins of a folder, with their stages and faults",
		Long: `Lists the plugins in FOLDER (default: that of --plugins), with their versions and stages, who has
signed an installed one, whether its files are unchanged, and the reason if a plugin cannot be
started. It starts no plugin. The exit status is 4 when one of them cannot be started.`,
		Example: `xtts-host plugins list
xtts-host plugins list my-plugins --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			return noArguments(cmd, args[min(1, len(args)):])
		},
		ValidArgsFunction: firstArgument(completeFolders),
	}
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{"plugins"}, func(_ *cobra.Command, set *config.Set, args []string) error {
		return inspect.Plugins(output(*asJSON), append(args, set.Plugins)[0], *asJSON)
	})
}

func newPluginsNew() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "new FOLDER",
		Short: "Create a new plugin from a template",
		Long: `Creates a folder with a plugin that works: an augmentation of waveforms, its tests, the SDK, and a
GitHub workflow that runs the tests. The last part of FOLDER is the name of the plugin and of its
stage. docs/plugins.md shows how to change the plugin and how to train with it.`,
		Example: `xtts-host plugins new my-plugins/room-echo
make -C my-plugins/room-echo test build`,
		Args:              oneArgument("the folder of the new plugin", "plugins new my-plugins/room-echo"),
		ValidArgsFunction: completeFolders,
	}
	language := cmd.Flags().String("lang", "go", "`language` of the plugin: "+strings.Join(newplugin.Languages(), ", "))
	return withSome(cmd, []string{}, func(_ *cobra.Command, _ *config.Set, args []string) error {
		return newplugin.Command(output(false), newplugin.Options{Folder: args[0], Language: *language})
	})
}

func newPluginsTest() *cobra.Command {
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
				return usage(cmd, hint.Errorf("for example: "+hint.Command("plugins test my-plugins/my-plugin"),
					"PLUGIN is missing: the folder or the name of a plugin"))
			}
			return nil
		},
		ValidArgsFunction: completeFolders,
	}
	stage := cmd.Flags().String("stage", "", "`name` of the only stage to test")
	values := valuesFlag(cmd)
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{"plugins", "graph", "plugin-data", "sandbox", "cache-dir", "ort-lib"},
		func(cmd *cobra.Command, set *config.Set, args []string) error {
			given, err := readValues(*values)
			if err != nil {
				return usage(cmd, err)
			}
			return plugintest.Command(cmd.Context(), output(*asJSON), plugintest.Options{
				Names: args, Plugins: set.Plugins, Graph: set.Graph, Stage: *stage, CacheDir: set.CacheDir,
				ORTLib: set.ORTLib, Values: given, Data: set.PluginData, JSON: *asJSON,
				Sandbox: sandbox.Mode(set.Sandbox),
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
