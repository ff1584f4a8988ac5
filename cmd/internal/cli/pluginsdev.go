package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host/base/exit"
	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/plugindev"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newPluginsDev() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev FOLDER --clip FILE",
		Short: "Build a plugin at each change, and write what it makes of a clip",
		Long: `Watches the folder of a plugin. At the start and after each change of its sources it builds the
plugin with make, or go build, starts it, sends a clip through its stages and those of the bundle's
pipeline before them, and prints a line: the times, the levels before and after, and what was drawn.
The folder of --out gets the sounds, spectrograms and draws of plugins try, and index.html, which
shows them and follows the turns. Faults of the build and of the plugin are shown, and the next
change is waited for. Enter sends the clip to the same processes again, Ctrl-C ends.`,
		Example: `xtts-host plugins dev my-plugins/room-echo --clip me.wav
xtts-host plugins dev my-plugins/room-echo --clip me.wav --once --out heard`,
		Args:              oneArgument("the folder of a plugin", "plugins dev my-plugins/room-echo --clip me.wav"),
		ValidArgsFunction: firstArgument(completeFolders),
	}
	o := plugindev.Options{}
	stage := cmd.Flags().String("stage", "",
		"`name` of the only stage to send the clip to (default: all of the plugin)")
	tryFlags(cmd, &o.Options)
	cmd.Flags().StringVar(&o.Out, "out", "",
		"`folder` for the results (default: that of the plugin with .dev at its end)")
	cmd.Flags().BoolVar(&o.Once, "once", false, "make one turn, and end with its status")
	debug := debugFlag(cmd)
	values := valuesFlag(cmd)
	return withSome(cmd, []string{"plugins", "graph", "seed", "plugin-data", "plugin-timeout", "plugin-start-timeout",
		"sandbox", "cache-dir", "ort-lib"},
		func(cmd *cobra.Command, set *config.Set, args []string) (err error) {
			if o.Clip == "" {
				return usage(cmd, hint.Errorf(
					"for example: "+hint.Command("plugins dev "+hint.Path(args[0])+" --clip me.wav"),
					"--clip is needed"))
			}
			if *stage != "" {
				o.Stages = []string{*stage}
			}
			o.Count = 1
			if err := checkNumbers(o.Options); err != nil {
				return usage(cmd, err)
			}
			if o.Values, err = readValues(*values); err != nil {
				return usage(cmd, err)
			}
			take(&o.Options, set)
			if o.Plugin = args[0]; !set.Given("plugins") {
				o.Plugins = "" // the folder around it
			}
			out := output(false)
			if *debug {
				o.Debug = func(line string) { visible.Fprintf(out, "%s\n", line) }
			}
			if !o.Once && term.IsTerminal(int(os.Stdin.Fd())) {
				o.Again = enters()
			}
			ctx, stop := interruptible(cmd.Context())
			defer stop()
			return plugindev.Command(ctx, out, o)
		})
}

// interruptible returns a context that the first signal to stop ends, and a function that ends it and the reactions to
// signals.
func interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := catch(func() { stopAtOnce("") })
	go func() {
		select {
		case <-r.stop:
			cancel(exit.ErrInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil); r.end() }
}

// enters has a value for each line of the standard input. In the background, where reading would stop the program, it
// has none.
func enters() <-chan struct{} {
	signal.Ignore(syscall.SIGTTIN)
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			lines <- struct{}{}
		}
	}()
	return lines
}

// waitForEnter lets a person attach a debugger.
func waitForEnter() {
	fmt.Fprintln(os.Stderr, "attach the debugger, then press Enter to send the clip")
	bufio.NewReader(os.Stdin).ReadString('\n')
}
