// Package dataset turns recordings and their texts into batches: it indexes a list (metadata.csv or JSON Lines,
// docs/data.md), plans which rows form which batch, decodes and resamples audio, and writes the dataset tensors of a
// batch to given memory. Columns of the list become tensors, too, if a bundle takes them as inputs (NewColumns).
//
// Everything random is a pure function of the seed, so the same seed gives the same batches with any number of workers,
// on any machine, and after any restart. docs/data-plan.md specifies the algorithm. An unreadable clip never changes
// the plan: its row becomes empty and is reported by name.
//
//	tok, err := dataset.LoadTokenizer("bundle/tokenizer.json")
//	...
//	ix, err := dataset.Open(ctx, dataset.Config{Dir: "LJSpeech-1.1", SampleRate: 22050, Tokenizer: tok, CacheDir: cache})
//	...
//	plan, err := dataset.NewPlan(ix.Rows, dataset.PlanConfig{Seed: 1, BatchSize: 16, Buckets: bundle.Buckets})
//	...
//	fill := dataset.NewFiller(ix, dataset.NewReferences(ix, 1), &quarantine) // one per worker
//	epoch := plan.Epoch(0)
//	for i := range epoch.Len() {
//		bad, err := fill.Fill(epoch.Batch(i), tensors)
//		...
//	}
//
// Index, Columns, Plan, Epoch, References, Tokenizer and Quarantine are safe for concurrent use. Only one goroutine at
// a time may use a Decoder or a Filler.
package dataset
