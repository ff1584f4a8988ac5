// Package frozen implements the stages of the plugin "inference": each runs an inference graph of the bundle
// (docs/bundle.md) on waveforms.
//
//	stage.Plugin{Stages: map[string]func() stage.Stage{
//		"codes": func() stage.Stage { return frozen.New("codes", "code_lengths", manifest.I32, datagpu.Open) },
//	}}
//
// Every row is a run of its own, and the bits of a row depend on nothing but its samples. As many elements of the
// output count as the graph says for the row.
//
// On the CPU a row is computed as it is, in one thread: rows compute in parallel, and no time is spent on padding. On a
// GPU (package gpustage) a row is padded with zeros to one of few widths, because each change of the shape costs time.
// The part of the graph that counts the elements is integer arithmetic, and runs on the CPU in both cases.
package frozen
