// Package cli implements the command line of xtts-host: the table of its commands, their flags, help, suggestions and
// completions.
//
//	func main() { os.Exit(cli.Run(os.Args[1:])) }
//
// To add a command, write a function that returns it and name it in New.
package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/release"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// Run runs a command line and returns the exit status of the program.
func Run(args []string) int {
	keepPaths(args)
	root := New()
	root.SetArgs(args)
	if len(args) > 0 && args[0] == cobra.ShellCompRequestCmd { // a shell asks for completions
		plainUsage(root)
	}
	var unknown error // cobra shows the help before it checks the arguments
	help := root.HelpFunc()
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		if names := cmd.Flags().Args(); len(names) > 0 && cmd.HasAvailableSubCommands() {
			unknown = unknownCommand(cmd, names)
			return
		}
		help(cmd, args)
	})
	err := cmp.Or(root.ExecuteContext(withTyped(context.Background(), args)), unknown)
	if err != nil {
		text := exit.Text(err)
		if !exit.Interrupted(err) {
			text = "error: " + text
		}
		out := folded(os.Stderr)
		fmt.Fprintln(out, text)
		if advice := exit.Hint(err); advice != "" {
			fmt.Fprintln(out, "hint:", advice)
		}
	}
	return exit.Code(err)
}

// New returns the program's command with all others below it.
func New() *cobra.Command {
	cobra.EnableCommandSorting = false // the order of the table below is that of the help
	root := newTrain("xtts-host")
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: hint.Program()}
	root.Long = rootText
	root.Example = trainExamples
	root.Version = release.Version()
	root.SetVersionTemplate("xtts-host {{.Version}}\n")
	root.Flags().Bool("version", false, "print the version, then exit")
	root.SilenceErrors, root.SilenceUsage = true, true // an error is one line and a hint: Run prints them
	root.CompletionOptions.DisableDefaultCmd = true
	root.PersistentFlags().BoolP("help", "h", false, "print this help, then exit")
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { printHelp(cmd) })
	root.SetFlagErrorFunc(flagError)

	train := newTrain("train")
	train.Long = "Trains the model. The program without a command does the same."
	train.Example = trainExamples
	root.AddCommand(
		train,
		newEvaluate(),
		newReplay(),
		newSynthesize(),
		newValidate(),
		newDoctor(),
		newFetch(),
		newBench(),
		newProfile(),
		newReport(),
		newView(),
		newCompare(),
		group("runs", "Commands for runs", newRunsList()),
		group("data", "Commands for data sets", newDataCheck(), newDataPrepare()),
		group("graph", "Commands for graph bundles", newGraphInspect(), newGraphLint(), newGraphFits()),
		group("plugins", "Commands for plugins", newPluginsList(), newPluginsNew(), newPluginsTest(), newPluginsTry(),
			newPluginsDev(), newPluginsPack(), newPluginsKey(), newPluginsIndex(), newPluginsInstall(),
			newPluginsVerify(), newPluginsRemove()),
		newVersion(),
		newCompletion(),
		newProbe(),
	)
	root.SetHelpCommand(newHelp())
	return root
}

const rootText = `xtts-host trains XTTS text-to-speech models from exported training graphs.

Without --graph and --train-data it trains the embedded model on the embedded sample.

Every flag is also an environment variable (--batch-size is XTTS_HOST_BATCH_SIZE) and a key of the
file that --config names (batch_size). A flag overrides the variable, which overrides the file.`

const trainExamples = `xtts-host --plugins ./plugins --train-data LJSpeech-1.1 --batch-size 16 --run-dir runs/first
xtts-host --resume runs/first --max-steps 20000
xtts-host --plugins ./plugins --augment waveaug,specaugment --print-config`

// group returns a command that only has others below it.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: name, Short: short, Args: noArguments}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return missingCommand(cmd) }
	cmd.AddCommand(commands...)
	return cmd
}
