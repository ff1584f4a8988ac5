// Package ortgraphs reads graph bundles: folders of exported training graphs that --graph takes. docs/bundle.md
// is their specification.
//
// Load refuses a bundle before any work is done with it: files that are not what bundle.json says, graphs
// whose inputs, outputs, types or shapes do not agree with it, operators that the stock ONNX Runtime does not
// have or that draw random numbers of their own, weights that do not fit. One error lists everything that is
// wrong. The package reads ONNX protobuf and never runs a graph, so it needs no native library; ortgraphs/ort
// runs them. A run asks for few of a graph's outputs: Program is the graph without what the others need.
//
//	b, err := ortgraphs.Open("builtin:myxtts-nano", "")
//	if err != nil {
//		return err // an *InvalidError names every fault with its file and place
//	}
//	train, _ := b.Manifest.Graph("train", "f32")
//	program, err := b.Program(train, func(output string) bool { return output != "metric.mel_loss" })
//	session, err := ort.NewSession(ort.SessionConfig{Model: program.Model, Dir: program.Dir})
//	arena := ortgraphs.NewArena(b.Manifest.Parameters, ortgraphs.Policy{})
//	weights, err := b.Weights()
//
// The default bundle and the optimizer's graphs are embedded in the program.
package ortgraphs
