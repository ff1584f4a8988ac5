// Package stage is the entry for authors of plugins: programs that prepare or augment the batches of a training
// run. A plugin is one type per stage and a main of one call:
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
// The example of [Serve] has the rest. A folder with the built program and a plugin.json beside it is the plugin.
// docs/plugin-protocol.md says what happens between the processes; package stagetest checks a stage against it in an
// ordinary Go test.
//
// Tensors lie in memory that host and plugins share, so a stage reads and writes them in place. Four rules
// make that safe, and stagetest checks each:
//
//   - A row with length 0 stays empty. All rows of a batch may be empty.
//   - Write only your outputs, and all of them: behind each row's length stands the pad value.
//   - Draw random numbers from [Batch.Rand] only: then a row gets the same draws in any batch, process or restart.
//   - Keep no state from one call that changes the next: after any failure the host rebuilds the batch and calls again.
//
// The package needs no cgo, and pulls no GPU code into a plugin.
package stage
