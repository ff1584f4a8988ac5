// Package stage is the entry for authors of plugins: programs that prepare or augment the batches of a training
// run. A plugin is one type per stage and a main of one call:
//
//	type Gain struct{ db float64 }
//
//	func (g *Gain) Configure(ctx context.Context, cfg *stage.Config) error {
//		var c struct{ MaxDB float64 `json:"max_db"` }
//		if err := cfg.Decode(&c); err != nil {
//			return err
//		}
//		g.db = c.MaxDB
//		return nil
//	}
//
//	func (g *Gain) Process(ctx context.Context, b *stage.Batch) error {
//		wave, lengths, width := b.Float32("waveform"), b.Int32("waveform_lengths"), b.Shape("waveform")[1]
//		for row, n := range lengths {
//			if n == 0 {
//				continue // an empty row stays empty
//			}
//			gain := float32(math.Pow(10, g.db*(2*b.Rand(row).Float64()-1)/20))
//			for i := range wave[row*width : row*width+int(n)] {
//				wave[row*width+i] *= gain
//			}
//		}
//		return nil
//	}
//
//	func main() {
//		stage.Serve(stage.Plugin{ID: "gain", Version: "1.0.0", Stages: map[string]func() stage.Stage{
//			"gain": func() stage.Stage { return new(Gain) },
//		}})
//	}
//
// The folder with the built program and a plugin.json beside it is the plugin. docs/plugin-protocol.md says what
// happens between the processes; package stagetest checks a stage against it in an ordinary Go test.
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
