// Command xtts-host trains XTTS text-to-speech models: it runs exported training graphs through ONNX Runtime while
// plugins prepare the next batches. docs/ and README.md say how to use it; --help lists the flags.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"

	"github.com/xtts-host/xtts-host/host"
	"github.com/xtts-host/xtts-host/host/config"
)

const usage = `xtts-host trains XTTS text-to-speech models from exported training graphs.

Usage:
  xtts-host --plugins ./plugins [flags]

Without --graph and --train-data it trains the embedded model on the embedded sample.
Every flag has an environment variable: --batch-size is XTTS_HOST_BATCH_SIZE.
`

func main() { os.Exit(run(os.Args[1:])) }

func run(args []string) int {
	set := config.New()
	if err := set.Parse(args, os.Environ()); errors.Is(err, pflag.ErrHelp) {
		fmt.Print(usage, set.Usage())
		return 0
	} else if err != nil {
		return fail(host.Usage(err))
	}
	stop := make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-signals
		fmt.Fprintln(os.Stderr, "stopping at the next step; once more to stop at once")
		close(stop)
		<-signals
		cancel()
	}()
	return fail(host.Run(ctx, set, host.Console{Out: os.Stdout, Err: os.Stderr, Stop: stop}))
}

// fail prints an error for people and returns the exit status for it.
func fail(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		if hint := host.Hint(err); hint != "" {
			fmt.Fprintln(os.Stderr, "hint:", hint)
		}
	}
	return host.ExitCode(err)
}
