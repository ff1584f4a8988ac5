package cli

import (
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host/command/pluginstore"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newPluginsPack() *cobra.Command {
	const example = "plugins pack my-plugins/room-echo"
	cmd := &cobra.Command{
		Use:   "pack FOLDER",
		Short: "Pack a plugin into one file for others",
		Long: `Writes an archive of the plugin in FOLDER: the files that its plugin.sum lists, its licence, and an
index with the SHA-256 of each file. The same files make the same bytes. The archive has the
programs for all platforms of plugin.json. docs/plugins-share.md shows how others install it.`,
		Example: `xtts-host plugins pack my-plugins/room-echo
xtts-host plugins pack my-plugins/room-echo --sign my.key --out room-echo.tar.gz`,
		Args:              oneArgument("the folder of a plugin", example),
		ValidArgsFunction: firstArgument(completeFolders),
	}
	o := pluginstore.PackOptions{Password: askPassword}
	cmd.Flags().StringVar(&o.Out, "out", "", "`file` to write (default NAME-VERSION.tar.gz)")
	cmd.Flags().StringVar(&o.Sign, "sign", "", "secret key `file`: also write a signature, FILE.minisig")
	return withSome(cmd, []string{}, func(_ *cobra.Command, _ *config.Set, args []string) error {
		o.Folder = args[0]
		return pluginstore.Pack(output(false), o)
	})
}

func newPluginsKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key FILE",
		Short: "Make a key that signs plugins",
		Long: `Makes a key in the format of minisign: FILE is the secret key, and FILE.pub the public one, which
users of your plugins compare. It asks for a password.`,
		Example: `xtts-host plugins key my.key`,
		Args:    oneArgument("the file of the new key", "plugins key my.key"),
	}
	o := pluginstore.KeyOptions{Password: askPassword}
	cmd.Flags().BoolVar(&o.NoPassword, "no-password", false, "make a key without a password")
	return withSome(cmd, []string{}, func(_ *cobra.Command, _ *config.Set, args []string) error {
		o.File = args[0]
		return pluginstore.Key(output(false), o)
	})
}

func newPluginsIndex() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "index FOLDER",
		Short: "Write an index of the archives in a folder",
		Long: `Writes FOLDER/index.json, which lists the archives in FOLDER with their hashes and signers. A server
of static files can serve the folder: plugins install NAME --index takes plugins from it.`,
		Example: `xtts-host plugins index public/plugins`,
		Args:    oneArgument("the folder of the archives", "plugins index public/plugins"),

		ValidArgsFunction: completeFolders,
	}
	return withSome(cmd, []string{}, func(cmd *cobra.Command, _ *config.Set, args []string) error {
		return pluginstore.MakeIndex(cmd.Context(), output(false), args[0])
	})
}

func newPluginsInstall() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install FILE|ADDRESS|NAME [FILE...]",
		Short: "Install a plugin that others have packed",
		Long: `Installs an archive of plugins pack into the folder of --plugins: a file, an https address, or with
--index NAME or NAME@VERSION of an index. It shows what the plugin is, what it asks for and who has
signed it, and asks before it writes anything. A signature, FILE.minisig, is taken from beside the
archive. The key of a plugin is kept at its first installation; another key is refused. With
--locked, it installs what a run has used, from the files, the index or the addresses of the run.`,
		Example: `xtts-host plugins install room-echo-0.1.0.tar.gz
xtts-host plugins install https://example.com/plugins/room-echo-0.1.0.tar.gz --plugins my-plugins
xtts-host plugins install room-echo --index https://example.com/plugins/index.json --yes
xtts-host plugins install --locked runs/first/plugins.lock`,
	}
	var o pluginstore.InstallOptions
	flags := cmd.Flags()
	locked := flags.String("locked", "", "`file` of a run, plugins.lock: install the plugins in it")
	one := oneArgument("an archive, its https address, or the name of a plugin of --index",
		"plugins install room-echo-0.1.0.tar.gz")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *locked != "" {
			return nil
		}
		return one(cmd, args)
	}
	flags.StringVar(&o.Index, "index", "", "`file` or https address of an index of plugins")
	flags.StringVar(&o.Key, "key", "", "the author's public `key`, or its file")
	flags.BoolVar(&o.Replace, "replace", false, "replace the version that is installed")
	flags.BoolVar(&o.Yes, "yes", false, "do not ask")
	return withSome(cmd, []string{"plugins", "require-signatures"},
		func(cmd *cobra.Command, set *config.Set, args []string) error {
			o.Plugins, o.RequireSignatures = set.Plugins, set.RequireSignatures
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			if term.IsTerminal(int(os.Stdin.Fd())) {
				o.Ask = func(question string) (bool, error) { return askYes(ctx, question) }
			}
			if *locked != "" {
				return pluginstore.InstallLocked(ctx, output(false), *locked, args, o)
			}
			o.What = args[0]
			return pluginstore.Install(ctx, output(false), o)
		})
}

func newPluginsVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "verify [NAME]",
		Short: "Compare installed plugins with what was installed",
		Long: `Compares the files of the plugin NAME, or of all plugins in the folder of --plugins, with the
archives that they were installed from, and the signatures of these with the keys that are known.
The exit status is 4 when one differs.`,
		Example: `xtts-host plugins verify
xtts-host plugins verify room-echo --plugins my-plugins --require-signatures`,
		Args: func(cmd *cobra.Command, args []string) error { return noArguments(cmd, args[min(1, len(args)):]) },
	}
	return withSome(cmd, []string{"plugins", "require-signatures"},
		func(_ *cobra.Command, set *config.Set, args []string) error {
			return pluginstore.Verify(output(false), set.Plugins, append(args, "")[0], set.RequireSignatures)
		})
}

func newPluginsRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove an installed plugin",
		Long: `Removes the plugin NAME from the folder of --plugins, if it was installed from an archive. One whose
files have changed since is only removed with --force. Its key stays known.`,
		Example: `xtts-host plugins remove room-echo`,
		Args:    oneArgument("the name of an installed plugin", "plugins remove room-echo"),
	}
	force := cmd.Flags().Bool("force", false, "also remove files that have changed")
	return withSome(cmd, []string{"plugins"}, func(_ *cobra.Command, set *config.Set, args []string) error {
		return pluginstore.Remove(output(false), set.Plugins, args[0], *force)
	})
}
