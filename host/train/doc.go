// Package train runs the training loop: it runs the training graph on the batches of the pipeline, accumulates
// gradients, and updates the weights with the optimizer graphs.
//
// The parts are
//
//   - [Model]: the bundle's graphs on ONNX Runtime. Weights and gradients are flat vectors that an [ortgraphs.Arena]
//     lays out, every device slot is one block of memory, and each (slot, bucket) has one IO binding, created before
//     the first step.
//   - [Optimizer]: gradient norm, accumulation and the update, as graphs over slices of the arenas.
//   - [Loop]: accumulation windows, windows that are skipped because a loss or a gradient is not finite, evaluation,
//     and the time of checkpoints.
//
// All methods but [Model.Load], which the copier calls, run on one goroutine that is locked to its thread: the CUDA
// context and the captured graphs of ONNX Runtime belong to a thread.
//
// This shelf has around the loop what outlives a step: checkpoint saves and loads the state, save decides when, resume
// whether a run may continue with other settings; device opens the model GPU, kernels compiles for it, memory plans
// what fits. It imports observe (to publish events), settings, stages and base. It does not know the plan of a run.
package train
