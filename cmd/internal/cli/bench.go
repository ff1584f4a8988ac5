package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/bench"
	"github.com/xtts-host/xtts-host/host/config"
)

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure steps per second with and without overlap",
		Long: `Measures steps per second with and without overlap of transfer and training, for several batch
sizes, on one GPU, and on two if the machine has two. It leaves no run folder.`,
		Example: `xtts-host bench --batch-sizes 8,16 --bench-steps 50
xtts-host bench --graph my-bundle --bench-rounds 3 --json > bench.json`,
		Args: noArguments,
	}
	o := bench.Options{}
	f := cmd.Flags()
	f.IntSliceVar(&o.BatchSizes, "batch-sizes", []int{8, 16, 32, 64, 128}, "batch `sizes` to measure, separated by commas")
	f.IntVar(&o.Steps, "bench-steps", 100, "`steps` of each measurement, at least 11")
	f.IntVar(&o.Rounds, "bench-rounds", 1, "`repetitions` of all measurements")
	f.StringSliceVar(&o.InputModes, "input-modes", nil, "input `modes` to measure: compute, synchronous, double, triple (default: all)")
	must(cmd.RegisterFlagCompletionFunc("input-modes", completeList(func() []string { return slices.Sorted(maps.Keys(bench.InputModes)) })))
	asJSON := jsonFlag(cmd)
	return withSettings(cmd, func(cmd *cobra.Command, set *config.Set) error {
		o.JSON = *asJSON
		return bench.Run(cmd.Context(), set, o, openConsole())
	})
}
