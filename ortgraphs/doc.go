// Package ortgraphs reads graph bundles: folders of exported training graphs for --graph. docs/bundle.md specifies
// them.
//
// Load refuses an invalid bundle before it is used: files that do not match bundle.json, graphs whose inputs, outputs,
// types or shapes do not match it, operators that the stock ONNX Runtime does not support or that draw their own random
// numbers, and weights that do not match the parameters. One error lists all faults. The package reads ONNX protobuf
// and never runs a graph, so it needs no native library; ortgraphs/ort runs them. A run needs few of a graph's outputs:
// Program is the graph pruned to them.
//
//	b, err := ortgraphs.Open("builtin:myxtts-nano", "")
//	if err != nil {
//		return err // an *InvalidError names every fault with its file and place
//	}
//	train, _ := b.Manifest.TrainingGraph("", manifest.F32)
//	program, err := b.Program(train, func(output string) bool { return output != "metric.mel_loss" })
//	session, err := ort.NewSession(ort.SessionConfig{Model: program.Model, Dir: program.Dir})
//	arena := ortgraphs.NewArena(b.Manifest.Parameters, ortgraphs.Policy{})
//	weights, err := b.Weights()
//
// The default bundle and the optimizer graphs are embedded in the program.
package ortgraphs
