package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/catalog"
	"github.com/xtts-host/xtts-host/ortgraphs"
	"github.com/xtts-host/xtts-host/shared/manifest"
)

// shells are those for which a script can be made.
var shells = map[string]func(root *cobra.Command) error{
	"bash": func(root *cobra.Command) error { return root.GenBashCompletionV2(os.Stdout, true) },
	"zsh":  func(root *cobra.Command) error { return root.GenZshCompletion(os.Stdout) },
	"fish": func(root *cobra.Command) error { return root.GenFishCompletion(os.Stdout, true) },
}

func newCompletion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a completion script for a shell",
		Long: `Prints a script with which a shell completes commands, flags and values. The script for bash
requires the package bash-completion.`,
		Example: `source <(xtts-host completion bash)
xtts-host completion zsh > "${fpath[1]}/_xtts-host"
xtts-host completion fish > ~/.config/fish/completions/xtts-host.fish`,
		ValidArgs: []string{"bash", "zsh", "fish"},
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return exit.Usage(errors.New("the shell is missing"), "it is bash, zsh or fish")
			case shells[args[0]] == nil:
				return exit.Usage(fmt.Errorf("unknown shell %q", args[0]), "it is bash, zsh or fish")
			}
			return noArguments(cmd, args[1:])
		},
		RunE: func(cmd *cobra.Command, args []string) error { return shells[args[0]](cmd.Root()) },
	}
}

// plainUsage takes the quotes off the placeholders in the descriptions of flags, which shells show as they are.
func plainUsage(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
	for _, c := range cmd.Commands() {
		plainUsage(c)
	}
}

// complete says how the values of a command's settings are completed. Values that are neither words, files nor folders
// are not.
func complete(cmd *cobra.Command, set *config.Set) {
	special := map[string]cobra.CompletionFunc{
		"graph":     completeBundle,
		"augment":   completeList(func() []string { return augmentations(set.Plugins) }),
		"buckets":   words("auto", "bundle"),
		"data-gpu":  words("auto", "cpu"),
		"model-gpu": words("auto"),
		"slots":     words("auto", "2", "3", "4"),
	}
	one := func(f *pflag.Flag) {
		if cmd.Flags().Lookup(f.Name) == nil {
			return
		}
		placeholder, _ := pflag.UnquoteUsage(f)
		switch choices := config.Choices(f.Name); {
		case special[f.Name] != nil:
			must(cmd.RegisterFlagCompletionFunc(f.Name, special[f.Name]))
		case choices != nil:
			must(cmd.RegisterFlagCompletionFunc(f.Name, words(choices...)))
		case placeholder == "folder":
			must(cmd.MarkFlagDirname(f.Name))
		case placeholder != "file" && placeholder != "path" && f.NoOptDefVal == "":
			must(cmd.RegisterFlagCompletionFunc(f.Name, cobra.NoFileCompletions))
		}
	}
	for _, g := range set.Groups() {
		g.Flags.VisitAll(one)
	}
}

func words(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completeList completes the last of words that are separated by commas, with those that are not there yet.
func completeList(list func() []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
		at := strings.LastIndexByte(typed, ',') + 1
		given := strings.Split(typed[:at], ",")
		for _, word := range list() {
			if strings.HasPrefix(word, typed[at:]) && !slices.Contains(given, word) {
				found = append(found, typed[:at]+word)
			}
		}
		return found, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// completeFolders completes the names of folders.
func completeFolders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// completeBundle completes the embedded bundles, and folders.
func completeBundle(_ *cobra.Command, _ []string, typed string) (found []string, _ cobra.ShellCompDirective) {
	for _, name := range ortgraphs.Builtins() {
		if strings.HasPrefix("builtin:"+name, typed) {
			found = append(found, "builtin:"+name)
		}
	}
	if found == nil {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}

// firstArgument completes the first argument of a command, and no other.
func firstArgument(by cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return by(cmd, args, typed)
	}
}

// augmentations returns the stages in a folder of plugins that --augment takes.
func augmentations(dir string) (list []string) {
	entries, err := catalog.Scan(dir)
	if err != nil {
		return nil // a completion has nowhere to say so
	}
	for _, e := range entries {
		if e.Manifest == nil {
			continue
		}
		for _, s := range e.Manifest.Stages {
			if s.Kind == manifest.Augment {
				list = append(list, s.Name)
			}
		}
	}
	return list
}

// must: the table names no flag that is not there, or the program does not start.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
