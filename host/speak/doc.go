// Package speak is the shelf that makes speech with a bundle's inference graphs.
//
//   - inference runs the graphs on the device of the model.
//   - synthesize turns texts into waveforms, and is the command of that name.
//   - measures says in numbers how far speech is from a recording.
//   - samples speaks at the evaluations of a run.
//
// This shelf imports train (checkpoints and the device) and the shelves below it.
package speak
