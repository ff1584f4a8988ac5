// Package trace writes a timeline of a run for people to look at: what each worker, stage, copy and slot did when, beside what the
// trainer and the GPU did. https://ui.perfetto.dev opens the file (docs/timeline.md).
//
// A Writer writes the file, a Timeline knows the tracks of a run. It is the pipeline's observer, and is told by the trainer:
//
//	w, err := trace.Create(path) // nil for "": then nothing is traced, and all methods of nil do nothing
//	...
//	line := trace.NewTimeline(w, trace.Run{Workers: 2, Stages: stages, DeviceSlots: 3, Bytes: bytes, Steps: 200})
//	pipeline.New(pipeline.Config{..., Observer: line}) // unless it is nil
//	...
//	line.Trained("train", &slot.Batch, began, ended)
//	line.Step()
//	...
//	err = w.Close()
//
// The format is Chrome's trace event format (the JSON array of "Trace Event Format", a document of the Chromium project): one event
// a line, times in microseconds. The bracket at its end may lack, so the file of a killed run can be opened, too.
package trace
