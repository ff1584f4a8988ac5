package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/xtts-host/xtts-host/host/command/inspect"
	"github.com/xtts-host/xtts-host/host/settings/config"
	"github.com/xtts-host/xtts-host/shared/hint"
)

func newGraphInspect() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "Show a graph bundle: tensors, parameters, buckets, cost",
		Long: `Shows what a graph bundle holds: inputs, outputs, parameters, buckets, pipeline, and the operations
and memory of a step. BUNDLE is a folder or builtin:NAME.`,
		Example: `xtts-host graph inspect builtin:myxtts-nano
xtts-host graph inspect my-bundle --json > bundle.json
xtts-host graph inspect my-bundle --fused=32 --card "RTX 4090"`,
		Args:              oneBundle,
		ValidArgsFunction: firstArgument(completeBundle),
	}
	asJSON := jsonFlag(cmd)
	rows := cmd.Flags().Uint16("fused", 0, "also count what a step of so many `rows` would read and write on a GPU, "+
		"as exported and with each region as one kernel")
	cmd.Flags().Lookup("fused").NoOptDefVal = "16"
	card := cmd.Flags().String("card", "", "GPU for which --fused predicts the time of a step, by its `name` "+
		"(default: the GPU of this machine, without one an H200)")
	return withSome(cmd, []string{"cache-dir"}, func(cmd *cobra.Command, set *config.Set, args []string) error {
		if cmd.Flags().Changed("fused") && *rows == 0 {
			return usage(cmd, errors.New("--fused 0: the smallest value is 1"))
		}
		if *card != "" && *rows == 0 {
			return usage(cmd, errors.New("--card predicts the time of a step with --fused"))
		}
		return inspect.Graph(output(*asJSON), args[0], set.CacheDir, int(*rows), *card, *asJSON)
	})
}

func newGraphLint() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lint BUNDLE",
		Short: "Find what is slow, wrong or not reproducible on a GPU in a graph bundle",
		Long: `Finds operations in the graphs of a bundle that are slow, wrong or not reproducible on a GPU, before
and after ONNX Runtime's optimizer. BUNDLE is a folder or builtin:NAME. The exit status is 2 when
there is a finding.`,
		Example:           `xtts-host graph lint my-bundle`,
		Args:              oneBundle,
		ValidArgsFunction: firstArgument(completeBundle),
	}
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{"cache-dir", "ort-lib"},
		func(_ *cobra.Command, set *config.Set, args []string) error {
			return inspect.Lint(output(*asJSON), args[0], set.CacheDir, set.ORTLib, *asJSON)
		})
}

func newGraphFits() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fits BUNDLE",
		Short: "Plan which batch fits on cards of 6 to 141 GB",
		Long: `Plans the memory of training a graph bundle on a GPU, and prints the largest --batch-size for cards
of 6 to 141 GB in each precision of the bundle. It needs no GPU. BUNDLE is a folder or builtin:NAME.`,
		Example: `xtts-host graph fits builtin:myxtts-nano
xtts-host graph fits my-bundle --json > fits.json`,
		Args:              oneBundle,
		ValidArgsFunction: firstArgument(completeBundle),
	}
	asJSON := jsonFlag(cmd)
	return withSome(cmd, []string{"cache-dir"}, func(_ *cobra.Command, set *config.Set, args []string) error {
		return inspect.Fits(output(*asJSON), args[0], set.CacheDir, *asJSON)
	})
}

// oneBundle asks for one argument.
func oneBundle(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage(cmd, hint.Errorf("for example: "+cmd.CommandPath()+" builtin:myxtts-nano",
			"BUNDLE is missing: a folder, or builtin:NAME"))
	}
	return noArguments(cmd, args[1:])
}
