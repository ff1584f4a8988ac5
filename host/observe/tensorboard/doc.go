// Package tensorboard writes the event files that TensorBoard reads, into the folder tensorboard of a run:
//
//	board, err := tensorboard.Open(tensorboard.Config{Dir: run, Step: 200, EvaluatedStep: 200, Metrics: names})
//	bus.Offer("tensorboard", board, warn)
//
// docs/monitoring.md says what each name on the board means. No library for Go writes these files and is kept up, and
// TensorFlow's own needs TensorFlow. So this package has its own code for the parts of the format that a run needs:
// records (record.go) and the messages in them (message.go).
//
// # Files
//
// TensorBoard reads the files of a folder in the order of their names, and assumes that it has read a file to its end
// when there is a later one. So a run has one file at a time, with the next number in its name:
//
//	events.out.tfevents.0000000001.xtts-host.steps               values of steps and means of evaluations
//	events.out.tfevents.0000000002.xtts-host.media.step-000200   histograms, pictures and speech of an evaluation
//	events.out.tfevents.0000000003.xtts-host.steps               what comes after it
//
// The file of an evaluation can be removed without a gap in the curves. That is how the media of old evaluations go.
//
// A run that is resumed cuts the files back to its checkpoint, as it does metrics.jsonl, and goes on in a new file. It
// does not append to the last one: a TensorBoard that is running has read further than the new end of that file, and
// would read on in the middle of a record. The new file begins with the message by which TensorBoard drops what it has
// read of later steps (SessionLog START).
//
// The board is a best-effort sink. The run does not wait for it, and a full disk ends the board, not the run. All that
// it shows is also in other files of the run.
package tensorboard
