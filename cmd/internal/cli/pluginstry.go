package cli

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/base/visible"
	"github.com/xtts-host/xtts-host/host/command/plugintry"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/host/stages/sandbox"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newPluginsTry() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "try STAGE[,STAGE...] --clip FILE --out FILE",
		Short: "Write what stages make of one clip, to hear or see it",
		Long: `Sends a clip through stages of the plugins in --plugins, and through those before them that make
their inputs, with the random draws of a run. STAGE is the name of a stage, or PLUGIN/STAGE. With
--pipeline the stages are those of a pipeline file, all of them or up to those that STAGE names.

--out names a WAV file for a stage that writes a waveform, and a PNG file for one that writes
spectrograms or other features: it gets what the last stage has written. If --out is a folder, or
ends with a slash, it gets the clip and what each stage has written, as sounds and as pictures, and
draws.json with the row keys and the draws that stages report.

With --count N, N epochs are tried from --epoch on. Epochs and steps are counted from 1.`,
		Example: `xtts-host plugins try waveaug --clip in.wav --out heard.wav --config snr_db_min=5
xtts-host plugins try waveaug,specaugment --clip in.wav --out heard/ --count 4 --seed 7
xtts-host plugins try --pipeline my-pipeline.yaml --clip in.wav --out heard/ --step 2000`,
		Args:              func(*cobra.Command, []string) error { return nil }, // RunE knows --pipeline
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o := plugintry.Options{}
	tryFlags(cmd, &o)
	cmd.Flags().StringVar(&o.Out, "out", "", "`file` to write: .wav to hear it, .png to see it; or a folder, with a "+
		"slash at its end")
	cmd.Flags().IntVar(&o.Count, "count", 1, "`number` of epochs to try, each with files of its own")
	debug := debugFlag(cmd)
	values := valuesFlag(cmd)
	return withSome(cmd, []string{"plugins", "graph", "seed", "plugin-data", "plugin-timeout", "plugin-start-timeout",
		"sandbox", "cache-dir", "ort-lib"},
		func(cmd *cobra.Command, set *config.Set, args []string) (err error) {
			for _, text := range args {
				o.Stages = append(o.Stages, strings.Split(text, ",")...)
			}
			if err := checkTry(o); err != nil {
				return usage(cmd, err)
			}
			if o.Values, err = readValues(*values); err != nil {
				return usage(cmd, err)
			}
			take(&o, set)
			out := output(false)
			if *debug {
				o.Debug = func(line string) { visible.Fprintf(out, "%s\n", line) }
				o.Started = waitForEnter
			}
			return plugintry.Command(cmd.Context(), out, o)
		})
}

// tryFlags gives a command the flags for a clip that is sent through stages.
func tryFlags(cmd *cobra.Command, o *plugintry.Options) {
	cmd.Flags().StringVar(&o.Clip, "clip", "", "audio `file` to try the stages on; its name is the id of the clip")
	cmd.Flags().StringVar(&o.Pipeline, "pipeline", "",
		"YAML or JSON `file` of settings with the pipeline, as --config of a run takes it")
	cmd.Flags().IntVar(&o.Epoch, "epoch", 1, "first `epoch` to try, which the draws depend on")
	cmd.Flags().IntVar(&o.Step, "step", 1, "`step` of the run that stages with a schedule are told")
}

// take fills in what is a setting of a run.
func take(o *plugintry.Options, set *config.Set) {
	o.Plugins, o.Graph, o.Seed, o.CacheDir, o.ORTLib = set.Plugins, set.Graph, set.Seed, set.CacheDir, set.ORTLib
	o.Data, o.Sandbox, o.Log = set.PluginData, sandbox.Mode(set.Sandbox), plugintry.Says(os.Stderr)
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	o.StartTimeout, o.Timeout = seconds(set.PluginStartTimeout), seconds(set.PluginTimeout)
}

// checkTry refuses what cannot be tried.
func checkTry(o plugintry.Options) error {
	example := "for example: " + hint.Command("plugins try waveaug --clip in.wav --out heard.wav")
	switch {
	case len(o.Stages) == 0 && o.Pipeline == "":
		return hint.Errorf(example, "STAGE is missing: the name of a stage")
	case o.Clip == "" || o.Out == "":
		return hint.Errorf(example, "--clip and --out are needed")
	case o.Count < 1 || o.Count > 1000:
		return fmt.Errorf("--count %d is not between 1 and 1000", o.Count)
	}
	return checkNumbers(o)
}

// checkNumbers refuses numbers that are counted from 0.
func checkNumbers(o plugintry.Options) error {
	switch {
	case o.Epoch < 1:
		return fmt.Errorf("--epoch %d: epochs are counted from 1", o.Epoch)
	case o.Step < 1:
		return fmt.Errorf("--step %d: steps are counted from 1", o.Step)
	}
	return nil
}

// debugFlag gives a command that starts plugins outside of a run the flag --debug.
func debugFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("debug", false,
		"switch off all deadlines of plugins, and print the process id of each, to attach a debugger "+
			"(docs/plugin-reference.md)")
}
