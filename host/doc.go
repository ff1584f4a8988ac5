// Package host runs a training job: it puts together the data set, the plugins, the pipeline, the training graph and
// the run folder, trains, and shuts everything down in order.
//
//	set := config.New()
//	if err := set.Parse(os.Args[1:], os.Environ()); err != nil { ... }
//	err := host.Run(ctx, set, console.Console{Out: os.Stdout, Stop: interrupted})
//	os.Exit(exit.Code(err))
//
// Errors that can be found before the first step are reported before the first step.
package host
