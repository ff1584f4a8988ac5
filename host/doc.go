// Package host runs a training job: it puts together the data set, the plugins, the pipeline, the training graph and
// the run folder, trains, and takes everything down again in order.
//
//	set := config.New()
//	if err := set.Parse(os.Args[1:], os.Environ()); err != nil { ... }
//	err := host.Run(ctx, set, host.Console{Out: os.Stdout, Stop: interrupted})
//	os.Exit(exit.Code(err))
//
// Whatever can be refused is refused before the first step.
package host
