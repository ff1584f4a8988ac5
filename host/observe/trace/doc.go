// Package trace writes a timeline of a run: what each worker, stage, transfer and slot did at which time, with the work
// of the trainer and the GPU. https://ui.perfetto.dev opens the file (docs/timeline.md).
//
// A Writer writes the file. A Timeline holds the tracks of a run. It is the pipeline's tracer and gets the trainer's
// events:
//
//	w, err := trace.Create(path) // nil for "": nothing is traced, and all methods of nil do nothing
//	...
//	line := trace.NewTimeline(w, trace.Run{Workers: 2, Stages: stages, DeviceSlots: 3, Bytes: bytes, Steps: 200})
//	pipeline.New(pipeline.Config{..., Tracer: line}) // unless it is nil
//	...
//	line.Trained("train", &slot.Batch, began, ended)
//	line.Step()
//	...
//	err = w.Close()
//
// The format is Chrome's trace event format (the JSON array of "Trace Event Format", a document of the Chromium
// project): one event per line, times in microseconds. The closing bracket may be missing, so the file of a killed run
// can be opened too.
package trace
