// Package frozen implements the stages of the plugin "inference": each runs an inference graph of the bundle
// (docs/bundle.md) on waveforms, on the CPU.
//
//	stage.Plugin{Stages: map[string]func() stage.Stage{
//		"codes": func() stage.Stage { return frozen.New("codes", "code_lengths", manifest.I32) },
//	}}
//
// Every row is a run of its own, without padding, in one thread: rows compute in parallel, no time is spent on padding, and
// the bits of a row depend on nothing but its samples. As many elements of the output count as it has.
package frozen
