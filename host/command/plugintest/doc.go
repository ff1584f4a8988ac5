// Package plugintest tests a plugin against the rules of docs/plugin-protocol.md outside of a run, in whatever language
// it is written. It starts the program as a run does, sends batches of noise, and reports which rules hold:
//
//	r, err := plugintest.Run(ctx, plugintest.Config{Plugin: entry, Bundle: bundle})
//	r.Print(os.Stdout)
//
// It knows nothing about what a stage computes: that is for the author's own tests.
package plugintest
