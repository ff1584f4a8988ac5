// Package train is the step loop: it takes batches from the pipeline, runs the training graph on them, and lets the
// optimizer graphs update the weights.
//
// The parts are
//
//   - [Model]: the bundle's graphs on ONNX Runtime. Weights and gradients lie in flat vectors that an
//     [ortgraphs.Arena] lays out, every device slot is a piece of memory, and each (slot, bucket) has one IO binding, made before the first step.
//   - [Optimizer]: gradient norm, accumulation and the update, as graphs over slices of the arenas.
//   - [Schedule]: the learning rate of every step.
//   - [Loop]: accumulation windows, windows that are skipped because something is not finite, evaluation, and when to
//     save.
//
// All but [Model.Load], which is the copier's, runs on one goroutine, locked to its thread: CUDA's context and ONNX Runtime's captured graphs belong
// to a thread.
package train
