// Package run runs a training job: it puts together the data set, the plugins, the pipeline, the training graph and
// the run folder, trains, and shuts everything down in order.
//
//	set := config.New()
//	if err := set.Parse(os.Args[1:], os.Environ()); err != nil { ... }
//	err := run.Train(ctx, set, console.Console{Out: os.Stdout, Stop: interrupted})
//	os.Exit(exit.Code(err))
//
// Errors that can be found before the first step are reported before the first step.
//
// This shelf has the phases of a run, each of which makes one value from those before it: plan decides, machine starts
// ring and processes, session opens the model, loop trains, speech speaks. record describes the run, runfolder locks
// its folder, ending judges how it ended. It imports every shelf but command.
package run
