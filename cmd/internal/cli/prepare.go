package cli

import (
	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/prepare"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

// prepared are the settings of a run on which depends what is computed, and how fast.
var prepared = []string{
	"plugins", "graph", "list-layout", "normalize", "augment", "config", "batch-size", "buckets",
	"enable-static-shapes", "num-workers", "plugin-workers", "plugin-data", "plugin-timeout", "plugin-start-timeout",
	"plugin-memory", "buffer-size", "ring-memory", "on-range", "sandbox", "max-quarantine", "device", "data-gpu",
	"model-gpu", "data-gpu-memory", "require-checksums", "require-signatures", "plugins-lock", "ort-lib", "cache-dir",
}

func newDataPrepare() *cobra.Command {
	var o prepare.Options
	cmd := &cobra.Command{
		Use:        "prepare DATA --out FOLDER",
		SuggestFor: []string{"precompute", "cache", "features"},
		Short:      "Compute the features of a data set before training, also on many machines",
		Long: `Computes what stages make of the clips of a list, such as mel spectrograms and pitch, and keeps it
in a folder that runs read with --feature-cache. DATA is what --train-data accepts; the other flags
are those of the run. With --shard I/N it computes one of N shards, for a machine each: all may
write to one folder, or to folders that are copied into one (docs/data-prepare.md). What is there
already is not computed again, so after an interruption the same command goes on. The exit status is
5 if more clips cannot be used than a run allows.

Without --num-workers and --plugin-workers, it decodes on all processors, and each plugin has a
process for each of them, at most four.`,
		Example: `xtts-host data prepare LJSpeech-1.1 --plugins ./plugins --out /data/features
xtts-host data prepare my-voice --stages target,prosody --out features --shard 2/5`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage(cmd, hint.Errorf("for example: "+hint.Command("data prepare LJSpeech-1.1 --out features"),
					"DATA is missing: a folder, its metadata.csv, or a JSON Lines file"))
			}
			return noArguments(cmd, args[1:])
		},
	}
	cmd.Flags().StringVar(&o.Out, "out", "", "`folder` for what is computed, which runs name with --feature-cache")
	cmd.Flags().StringSliceVar(&o.Stages, "stages", nil,
		"`names` of stages of the pipeline, separated by commas (default: all that a run keeps)")
	shard := cmd.Flags().String("shard", "1/1", "`I/N`: compute the I-th of N shards of the list, counted from 1")
	asJSON := jsonFlag(cmd)
	return withSome(cmd, prepared, func(cmd *cobra.Command, set *config.Set, args []string) (err error) {
		if o.Out == "" {
			return usage(cmd,
				hint.Errorf("name a folder with --out", "--out is missing: the folder for what is computed"))
		}
		if o.Shard, err = prepare.ParseShard(*shard); err != nil {
			return usage(cmd, err)
		}
		set.TrainData, o.JSON = args[0], *asJSON
		c := openConsole()
		c.Out = output(o.JSON)
		return prepare.Run(cmd.Context(), set, o, c)
	})
}
