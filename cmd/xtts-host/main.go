// Command xtts-host trains XTTS text-to-speech models: it runs exported training graphs through ONNX Runtime while
// plugins prepare the next batches. README.md says how to use it; --help lists the flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/xtts-host/xtts-host/host"
	"github.com/xtts-host/xtts-host/host/config"
	"github.com/xtts-host/xtts-host/host/exit"
)

const usage = `xtts-host trains XTTS text-to-speech models from exported training graphs.

Usage:
  xtts-host --plugins ./plugins [flags]     train
  xtts-host plugins list [DIR]              what is in a folder of plugins, and why it can or cannot be started
  xtts-host graph inspect [--json] BUNDLE   inputs, outputs, parameters, buckets, FLOPs and memory of a bundle
  xtts-host graph lint BUNDLE               what in its graphs would be slow, wrong or not reproducible on a GPU
  xtts-host doctor [--json] [flags]         whether training with these flags can work on this machine, and what is missing
  xtts-host validate [--json FILE] [flags]  whether a run with these flags works: model, transfer, three steps
  xtts-host bench [--batch-sizes N,...] [--bench-steps N] [--bench-rounds N] [--feedings NAME,...] [--json FILE] [flags]
                                            steps per second with and without overlap, on one GPU and on two
  xtts-host version

Without --graph and --train-data it trains the embedded model on the embedded sample.
Every flag has an environment variable: --batch-size is XTTS_HOST_BATCH_SIZE.
`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	if len(args) == 0 || args[0] == "" || args[0][0] == '-' {
		return train(args)
	}
	given := strings.Join(args, " ")
	command := args[0]
	if len(args) > 1 && (command == "plugins" || command == "graph") {
		command += " " + args[1]
		args = args[1:]
	}
	args = args[1:]
	switch {
	case command == "plugins list" && len(args) <= 1:
		return end(host.ListPlugins(os.Stdout, append(args, "plugins")[0]))
	case command == "graph inspect" && len(args) == 1 && args[0] != "--json":
		return end(host.InspectGraph(os.Stdout, args[0], os.Getenv("XTTS_HOST_CACHE_DIR"), false))
	case command == "graph inspect" && len(args) == 2 && args[0] == "--json":
		return end(host.InspectGraph(os.Stdout, args[1], os.Getenv("XTTS_HOST_CACHE_DIR"), true))
	case command == "graph lint" && len(args) == 1:
		return end(host.LintGraph(os.Stdout, args[0], os.Getenv("XTTS_HOST_CACHE_DIR"), os.Getenv("XTTS_HOST_ORT_LIB")))
	case command == "bench":
		return bench(args)
	case command == "doctor":
		return diagnose(args)
	case command == "validate":
		return validate(args)
	case command == "probe" && len(args) == 2: // a process of doctor or validate
		return end(host.Probe(os.Stdout, args[0], args[1]))
	case command == "version" && len(args) == 0:
		fmt.Println("xtts-host", version())
		return 0
	case command == "help":
		return train([]string{"--help"})
	}
	return end(exit.Usage(fmt.Errorf("%q is no command", given), "xtts-host --help lists them"))
}

func train(args []string) int {
	set := config.New()
	if err := set.Parse(args, os.Environ()); errors.Is(err, pflag.ErrHelp) {
		fmt.Print(usage, set.Usage())
		return 0
	} else if err != nil {
		return end(exit.Usage(err, "xtts-host --help lists the flags"))
	}
	return end(host.Run(context.Background(), set, console()))
}

// console is standard output and error. The first signal stops the run in order, the second at once.
func console() host.Console {
	stop := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		close(stop)
		<-signals
		// Plugins see the host's end by themselves, and every checkpoint on the disk is whole.
		fmt.Fprintln(os.Stderr, "error: stopped at once; what was trained since the last checkpoint is lost")
		os.Exit(1)
	}()
	return host.Console{Out: os.Stdout, Err: os.Stderr, Terminal: terminal(os.Stdout), ErrTerminal: terminal(os.Stderr), Stop: stop}
}

// bench has flags of its own, and passes the others on.
func bench(args []string) int {
	if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
		fmt.Print(usage, config.New().Usage())
		return 0
	}
	o := host.BenchOptions{Environ: os.Environ()}
	own := pflag.NewFlagSet("bench", pflag.ContinueOnError)
	own.IntSliceVar(&o.BatchSizes, "batch-sizes", []int{8, 16, 32, 64, 128}, "")
	own.IntVar(&o.Steps, "bench-steps", 100, "")
	own.IntVar(&o.Rounds, "bench-rounds", 1, "")
	own.StringSliceVar(&o.Feedings, "feedings", nil, "")
	own.StringVar(&o.JSON, "json", "", "")
	var err error
	if o.Args, err = take(own, args); err != nil {
		return end(exit.Usage(err, "xtts-host --help lists the flags"))
	}
	return end(host.Bench(context.Background(), o, console()))
}

// validate takes the flags of train, and --json FILE.
func validate(args []string) int {
	var file string
	own := pflag.NewFlagSet("validate", pflag.ContinueOnError)
	own.StringVar(&file, "json", "", "")
	set := config.New()
	args, err := take(own, args)
	if err == nil {
		err = set.Parse(args, os.Environ())
	}
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Print(usage, set.Usage())
		return 0
	} else if err != nil {
		return end(exit.Usage(err, "xtts-host --help lists the flags"))
	}
	return end(host.Validate(context.Background(), set, version(), file, console()))
}

// take sets the flags of own, which all have a value, and returns the other arguments.
func take(own *pflag.FlagSet, args []string) (others []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(args[i], "=")
		flag, is := strings.CutPrefix(name, "--")
		f := own.Lookup(flag)
		if f == nil || !is {
			others = append(others, args[i])
			continue
		}
		if !given {
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		if err := f.Value.Set(value); err != nil {
			return nil, fmt.Errorf("--%s %s: %w", f.Name, value, err)
		}
	}
	return others, nil
}

// diagnose takes the flags of train, and --json.
func diagnose(args []string) int {
	n := len(args)
	args = slices.DeleteFunc(args, func(arg string) bool { return arg == "--json" })
	set := config.New()
	if err := set.Parse(args, os.Environ()); errors.Is(err, pflag.ErrHelp) {
		fmt.Print(usage, set.Usage())
		return 0
	} else if err != nil {
		return end(exit.Usage(err, "xtts-host --help lists the flags"))
	}
	return end(host.Doctor(context.Background(), os.Stdout, set, version(), len(args) < n))
}

// terminal reports whether a bar can be drawn on f: it is a terminal that can move its cursor and knows its width.
func terminal(f *os.File) bool {
	if os.Getenv("TERM") == "dumb" {
		return false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	return err == nil && width > 0
}

// end prints an error for people and returns the exit status for it.
func end(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", exit.Text(err))
		if hint := exit.Hint(err); hint != "" {
			fmt.Fprintln(os.Stderr, "hint:", hint)
		}
	}
	return exit.Code(err)
}

// version is the module's version, or the commit that was built.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	return info.Main.Version
}
