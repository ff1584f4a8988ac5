package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/bench"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure steps per second with and without overlap",
		Long: `Measures steps per second with and without overlap of transfer and training, for several batch
sizes, on one GPU, and on two if the machine has two. It leaves no run folder.

With --against pytorch it compares steps with those of PyTorch in every precision: eager,
compiled and in CUDA graphs, on the same batches on the device, and end to end from the same
audio files.`,
		Example: `xtts-host bench --batch-sizes 8,16 --bench-steps 50
xtts-host bench --graph my-bundle --bench-rounds 3 --json > bench.json
xtts-host bench --against pytorch --graph my-bundle --builder model.py:build`,
		Args: noArguments,
	}
	o := bench.Options{}
	f := cmd.Flags()
	f.IntSliceVar(&o.BatchSizes, "batch-sizes", []int{8, 16, 32, 64, 128},
		"batch `sizes` to measure, separated by commas")
	sizes := f.Lookup("batch-sizes")
	sizes.DefValue = strings.Trim(sizes.DefValue, "[]") // as the flag takes them
	f.IntVar(&o.Steps, "bench-steps", 100, "`steps` of each measurement, at least 11")
	f.IntVar(&o.Rounds, "bench-rounds", 1, "`repetitions` of all measurements")
	f.StringSliceVar(&o.InputModes, "input-modes", nil,
		"input `modes` to measure: compute, synchronous, double, triple (default: all)")
	must(cmd.RegisterFlagCompletionFunc("input-modes",
		completeList(func() []string { return slices.Sorted(maps.Keys(bench.InputModes)) })))
	f.StringVar(&o.Against.Program, "against", "", "`program` to compare with: pytorch")
	must(cmd.RegisterFlagCompletionFunc("against", completeList(func() []string { return []string{bench.PyTorch} })))
	f.StringVar(&o.Against.Python, "python", "",
		"`program` with PyTorch (default: the exporter's environment in .cache, else python3)")
	f.StringVar(&o.Against.Builder, "builder", "",
		"`MODULE:FUNCTION` that the bundle was exported from (default: the preset of its name)")
	f.StringSliceVar(&o.Against.Forms, "forms", nil,
		"`forms` of PyTorch: eager, compile, graphs, autotune, each also with -sdpa (default: all but autotune)")
	asJSON := jsonFlag(cmd)
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		o.JSON = *asJSON
		return bench.Run(cmd.Context(), set, o, openConsole())
	})
}
