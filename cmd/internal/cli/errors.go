package cli

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// usage refuses a command line. The hint is that of the error, or else the command's help.
func usage(cmd *cobra.Command, err error) error {
	return exit.Refused(exit.Advise(err, cmd.CommandPath()+" --help lists the flags"))
}

// flagError refuses flags, and names the right one or the command that has it.
func flagError(cmd *cobra.Command, err error) error {
	// An unknown command comes before its flags, which are not those of the command above it.
	if names := cmd.Flags().Args(); len(names) > 0 && cmd.HasAvailableSubCommands() && assignment(cmd, names[0]) == "" {
		return unknownCommand(cmd, names)
	}
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if advice := foreign(cmd, unknown.GetSpecifiedName()); advice != "" {
			return usage(cmd, hint.Errorf(advice, "%w", err))
		}
		if name := synonyms[unknown.GetSpecifiedName()]; cmd.Flags().Lookup(name) != nil {
			return usage(cmd, hint.Errorf(fmt.Sprintf("%s names a run with --%s", cmd.CommandPath(), name), "%w", err))
		}
		if advice := lacking[typedAs(cmd)+" --"+unknown.GetSpecifiedName()]; advice != "" {
			return usage(cmd, hint.Errorf(advice, "%w", err))
		}
		if other := commandWith(cmd.Root(), unknown.GetSpecifiedName()); other != nil {
			advice := fmt.Sprintf("it is a flag of %q", other.CommandPath())
			if cmd.HasParent() && cmd.HasSubCommands() && other.Name() == "train" { // as in --train-data my data
				advice += "; quote a value that has spaces"
			}
			return usage(cmd, hint.Errorf(advice, "%w", err))
		}
	}
	return usage(cmd, config.FlagError(cmd.Flags(), err))
}

// lacking are flags that a command does without, though similar ones have them.
var lacking = map[string]string{
	"plugins test --debug": "plugins test stops the plugin's processes itself, also those in a debugger; " +
		"plugins try and plugins dev have --debug",
}

// synonyms are flags of training that have another name in other commands.
var synonyms = map[string]string{"resume": "run", "run-dir": "run"}

// foreign is the hint for a name that another program has for a flag. In commands without the settings of a run, it is
// one for a flag that they have, or for speaking.
func foreign(cmd *cobra.Command, name string) string {
	known := func(flag string) bool { return cmd.Flags().Lookup(flag) != nil }
	advice := config.ForeignHint(name, known, func(flag string) string { return "--" + flag })
	speaks := known("speaker") && strings.Contains(advice, "docs/synthesize.md")
	if !known("train-data") && !speaks && !strings.HasPrefix(advice, "did you mean ") {
		return ""
	}
	return advice
}

// assignment is the advice for an argument such as batch_size=4, as other trainers have settings; "" for other
// arguments.
func assignment(cmd *cobra.Command, argument string) string {
	name, value, ok := strings.Cut(argument, "=")
	if !ok || name == "" || strings.ContainsAny(name, "/ ") {
		return ""
	}
	if ours := strings.ReplaceAll(name, "_", "-"); cmd.Flags().Lookup(ours) != nil {
		return "settings are flags: --" + ours + " " + hint.Path(value)
	}
	return cmp.Or(foreign(cmd, name), "settings are flags, and --help lists them")
}

// commandWith returns a command that has a flag, or nil.
func commandWith(root *cobra.Command, flag string) *cobra.Command {
	for _, cmd := range runnable(root) {
		if cmd.LocalFlags().Lookup(flag) != nil {
			return cmd
		}
	}
	return nil
}

// oneArgument refuses any other number of arguments. example follows the name of the program.
func oneArgument(what, example string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return nil
		}
		return usage(cmd, hint.Errorf("for example: "+hint.Command(example), "%s takes one argument: %s", typedAs(cmd),
			what))
	}
}

// noArguments refuses arguments: those of a command that has others below it are mistyped commands.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case cmd.HasAvailableSubCommands() && assignment(cmd, args[0]) == "":
		return unknownCommand(cmd, args)
	}
	advice := cmd.CommandPath() + " --help shows how to call it"
	// not what is to be spoken
	if run := cmd.Flags().Lookup("run"); run != nil && !run.Changed && strings.Contains(cmd.Use, "--run RUN") {
		advice = "a flag names the run: " + cmd.CommandPath() + " --run " + hint.Path(args[0])
	}
	advice = cmp.Or(assignment(cmd, args[0]), unquoted(cmd, args[0]), advice)
	cmd.Flags().Visit(func(f *pflag.Flag) { // given without the value that it may have
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" && f.Value.String() == f.NoOptDefVal {
			advice = "a value of --" + f.Name + " follows an equals sign: --" + f.Name + "=" + hint.Path(args[0])
		}
	})
	return exit.Usage(fmt.Errorf("unexpected argument %q", args[0]), advice)
}

// unknownCommand names the command that was meant.
func unknownCommand(below *cobra.Command, args []string) error {
	root := below.Root()
	typed := strings.TrimSpace(typedAs(below) + " " + args[0])
	advice := hint.DidYouMean(typed, commandsBelow(below))
	if other := otherNames(below)[args[0]]; len(other) > 0 {
		advice = "did you mean " + strings.Join(other, " or ") + "?"
	}
	advice = cmp.Or(unquoted(below, args[0]), advice)
	if advice == "" {
		advice = root.CommandPath() + " --help lists the commands"
	}
	return exit.Usage(fmt.Errorf("unknown command %q", typed), advice)
}

// otherNames are the commands below one by the names that other programs have for what they do.
func otherNames(below *cobra.Command) map[string][]string {
	list := map[string][]string{}
	for _, cmd := range runnable(below) {
		for _, name := range cmd.SuggestFor {
			list[name] = append(list[name], typedAs(cmd))
		}
	}
	return list
}

// missingCommand names the commands below a group.
func missingCommand(cmd *cobra.Command) error {
	return exit.Usage(fmt.Errorf("%q is not a command by itself", cmd.CommandPath()),
		"the commands are: "+strings.Join(commandsBelow(cmd), ", "))
}

// commandsBelow returns the commands below one that can be run, as they are typed.
func commandsBelow(cmd *cobra.Command) []string {
	var list []string
	for _, c := range runnable(cmd) {
		list = append(list, typedAs(c))
	}
	return list
}

// typedAs is a command as it is typed after the program's name; "" for the program.
func typedAs(cmd *cobra.Command) string {
	return strings.TrimSpace(strings.TrimPrefix(cmd.CommandPath(), cmd.Root().CommandPath()))
}

// runnable returns the commands below one that do something, in the order of the table.
func runnable(cmd *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range cmd.Commands() {
		switch {
		case !c.IsAvailableCommand():
		case c.HasAvailableSubCommands():
			list = append(list, runnable(c)...)
		default:
			list = append(list, c)
		}
	}
	return list
}
