package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host/base/fold"
	"github.com/xtts-host/xtts-host/host/base/overwrite"
	"github.com/xtts-host/xtts-host/host/settings/config"
)

// writes are the flags that name what a command writes, in all commands.
var writes = []string{
	"apply", "cache-dir", "debug-dir", "feature-cache", "out", "pictures", "resume", "resume-or-start", "run-dir",
	"trace",
}

// reads are the flags that name what a command reads, in all commands. A run that continues is read and written.
var reads = map[string]overwrite.Kind{
	"baseline": overwrite.Run, "clip": overwrite.File, "config": overwrite.File, "graph": overwrite.Bundle,
	"index": overwrite.File, "init": overwrite.Run, "key": overwrite.File, "locked": overwrite.File,
	"ort-lib": overwrite.File, "pipeline": overwrite.File, "plugin-data": overwrite.Data,
	"plugins": overwrite.Plugins, "plugins-lock": overwrite.File, "python": overwrite.File,
	"resume": overwrite.Run, "resume-or-start": overwrite.Run, "run": overwrite.Run,
	"samples": overwrite.File, "sign": overwrite.File, "speaker": overwrite.File, "text-file": overwrite.File,
	"train-data": overwrite.Data, "val-data": overwrite.Data,
}

// arguments are the commands, as they are typed, whose arguments name what they read.
var arguments = map[string]overwrite.Kind{
	"data check": overwrite.Data, "data prepare": overwrite.Data,
	"graph fits": overwrite.Bundle, "graph inspect": overwrite.Bundle,
	"graph lint": overwrite.Bundle, "plugins dev": overwrite.Plugins, "plugins list": overwrite.Plugins,
	"plugins pack": overwrite.Plugins, "plugins test": overwrite.Plugins,
	"replay":  overwrite.Run,
	"compare": overwrite.Run, "report": overwrite.Run, "view": overwrite.Run,
}

// checkPlaces refuses outputs of a command that are its inputs. The inputs may be no flags of the command: the run that
// it continues or reads names them. Messages keep all of them whole.
func checkPlaces(cmd *cobra.Command, set *config.Set, args []string) error {
	out := []overwrite.Place{
		{Flag: "the standard output", Path: "/dev/stdout"}, {Flag: "the standard error", Path: "/dev/stderr"},
	}
	var in []overwrite.Place
	derived := func(f *pflag.Flag) bool {
		return (f.Name == "resume" || f.Name == "run-dir") && set.ResumeOrStart != ""
	} // it is the same
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(writes, f.Name) && !derived(f) {
			for _, path := range pathsOf(f) {
				out = append(out, overwrite.Place{Flag: "--" + f.Name, Path: path})
			}
		}
	})
	read := func(f *pflag.Flag) {
		kind, ok := reads[f.Name]
		if !ok || derived(f) || slices.ContainsFunc(in, func(p overwrite.Place) bool {
			return p.Flag == "--"+f.Name && p.Path == f.Value.String()
		}) {
			return
		}
		for _, path := range pathsOf(f) {
			if kind == overwrite.Run {
				path, _ = config.SplitRun(path)
			}
			in = append(in, overwrite.Place{Flag: "--" + f.Name, Path: path, Kind: kind})
		}
	}
	cmd.Flags().VisitAll(read)
	for _, g := range set.Groups() {
		g.Flags.VisitAll(read)
	}
	if kind, ok := arguments[typedAs(cmd)]; ok {
		for _, path := range args {
			in = append(in, overwrite.Place{Flag: "the argument " + path, Path: path, Kind: kind})
		}
	}
	for _, place := range slices.Concat(out, in) {
		fold.Keep(place.Path)
	}
	return overwrite.Check(out, in)
}

// pathsOf returns the paths that a flag names. A bundle of the program and a standard stream have none, nor has a flag
// that takes KEY=VALUE.
func pathsOf(f *pflag.Flag) (paths []string) {
	if several, ok := f.Value.(interface{ Paths() []string }); ok {
		return several.Paths()
	}
	if strings.Contains(usedName(f), "=") {
		return nil // --config KEY=VALUE
	}
	list := []string{f.Value.String()}
	if several, ok := f.Value.(pflag.SliceValue); ok {
		list = several.GetSlice()
	}
	for _, path := range list {
		if path != "" && path != "-" && !strings.HasPrefix(path, "builtin:") {
			paths = append(paths, path)
		}
	}
	return paths
}

// usedName is the name of a flag's value in the help: file, folder, KEY=VALUE.
func usedName(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	return name
}
