// Package stage provides the SDK for plugins: programs that prepare or augment the batches of a training run. A plugin
// consists of one type per stage and a main function with one call:
//
//	type Gain struct{ maxDB float64 }
//
//	func (g *Gain) Configure(ctx context.Context, cfg *stage.Config) error { ... }
//	func (g *Gain) Process(ctx context.Context, b *stage.Batch) error      { ... }
//
//	func main() {
//		stage.Serve(stage.Plugin{ID: "gain", Version: "1.0.0", Stages: map[string]func() stage.Stage{
//			"gain": func() stage.Stage { return new(Gain) },
//		}})
//	}
//
// The example of [Serve] is complete. A folder with the built program and its plugin.json is a plugin.
// docs/plugin-protocol.md specifies the protocol between the processes. Package stagetest tests a stage against it in
// an ordinary Go test.
//
// The tensors are in memory that the host shares with its plugins, so a stage reads and writes them in place. Four
// rules make this safe, and stagetest checks each of them:
//
//   - A row of length 0 stays empty. All rows of a batch may be empty.
//   - Write only your outputs, and all of them: after the end of each row, write the pad value.
//   - Take random numbers only from [Batch.Rand]. Then a row gets the same draws in any batch, process or restarted
//     run.
//   - Keep no state from one call that changes a later call. After a failure, the host rebuilds the batch and calls
//     Process again.
//
// The package needs no cgo and links no GPU code into a plugin.
package stage
