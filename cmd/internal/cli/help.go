package cli

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/fold"
)

// widest is the width of the help in columns, if the terminal has so many.
const widest = 100

// printHelp writes the help of a command, in the width of a narrow terminal.
func printHelp(cmd *cobra.Command) {
	width := widest
	if to, ok := cmd.OutOrStdout().(*os.File); ok {
		if n := columns(to); n > 0 {
			width = min(width, n)
		}
	}
	fmt.Fprint(cmd.OutOrStdout(), Help(cmd, width))
}

// Help returns what --help prints for so many columns. Examples stay as they are: they are copied into a shell.
func Help(cmd *cobra.Command, width int) string {
	var out strings.Builder
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	if width < widest {
		text = paragraphs(text, width)
	}
	fmt.Fprintf(&out, "%s\n\nUsage:\n", text)
	if !cmd.HasAvailableSubCommands() || cmd == cmd.Root() {
		fmt.Fprintf(&out, "  %s\n", cmd.UseLine())
	}
	if commands := runnable(cmd); len(commands) > 0 {
		var list strings.Builder
		fmt.Fprintf(&list, "  %s COMMAND\n\nCommands:\n", cmd.CommandPath())
		for _, c := range commands {
			fmt.Fprintf(&list, "  %-14s  %s\n", typedAs(c), c.Short)
		}
		out.WriteString(fold.Text(list.String(), width))
	}
	if cmd.Example != "" {
		fmt.Fprintf(&out, "\nExamples:\n  %s\n", strings.ReplaceAll(example(cmd), "\n", "\n  "))
	}
	for _, g := range flagGroups(cmd) {
		fmt.Fprintf(&out, "\n%s:\n%s", g.Name(), g.FlagUsagesWrapped(width))
	}
	if hasSettings(cmd) && !listsSettings(cmd) {
		out.WriteString(fold.Text(fmt.Sprintf(
			"\nIt also takes every flag of training: \"%s train --help\" lists them.\n", cmd.Root().CommandPath()),
			width))
	}
	return out.String()
}

// example returns the examples of a command with the word that the program is called by.
func example(cmd *cobra.Command) string {
	return strings.ReplaceAll(cmd.Example, cmd.Root().Name()+" ", cmd.Root().CommandPath()+" ")
}

// paragraphs wraps the paragraphs of a text, which are separated by empty lines.
func paragraphs(text string, width int) string {
	var all []string
	for _, p := range strings.Split(text, "\n\n") {
		var lines []string
		line := ""
		for _, word := range strings.Fields(p) {
			switch {
			case line == "":
				line = word
			case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
				line += " " + word
			default:
				lines, line = append(lines, line), word
			}
		}
		all = append(all, strings.Join(append(lines, line), "\n"))
	}
	return strings.Join(all, "\n\n")
}

// flagGroups returns the flags that the help of a command lists, by title, the settings first.
func flagGroups(cmd *cobra.Command) []*pflag.FlagSet {
	cmd.InitDefaultHelpFlag() // which adds the flags of the commands above
	own := pflag.NewFlagSet("Flags", pflag.ContinueOnError)
	var groups []*pflag.FlagSet
	add := func(f *pflag.Flag) {
		title := f.Annotations[groupAnnotation]
		switch {
		case f.Hidden:
		case title == nil:
			own.AddFlag(f)
		case listsSettings(cmd):
			if len(groups) == 0 || groups[len(groups)-1].Name() != title[0] {
				groups = append(groups, pflag.NewFlagSet(title[0], pflag.ContinueOnError))
				groups[len(groups)-1].SortFlags = false
			}
			groups[len(groups)-1].AddFlag(f)
		}
	}
	own.SortFlags = false
	cmd.Flags().VisitAll(add)
	if len(groups) > 0 {
		own.Init("Other", pflag.ContinueOnError)
	}
	return append(groups, own)
}

// hasSettings reports whether every setting of a run is a flag of the command.
func hasSettings(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("plugins")
	return f != nil && f.Annotations[groupAnnotation] != nil
}

// listsSettings reports whether the help of a command lists them: that of those which train.
func listsSettings(cmd *cobra.Command) bool {
	return cmd == cmd.Root() || cmd.Name() == "train"
}

func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		Long:  "Prints the help of a command, or of the program.",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return unknownCommand(found, rest)
			}
			return found.Help()
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var words []string
			for _, c := range found.Commands() {
				if c.IsAvailableCommand() {
					words = append(words, c.Name()+"\t"+c.Short)
				}
			}
			return words, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
