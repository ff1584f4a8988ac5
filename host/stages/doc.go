// Package stages is the page of the shelf that brings a batch through the stages of plugins, without knowing what is in
// the batch, where it goes, or which flag asked for it.
//
//   - catalog finds and checks plugins, and plans which stage runs after which.
//   - supervise runs their processes: start, calls, deadlines, restarts, memory.
//   - pipeline moves batches from the plan to the trainer: slots, owners, order.
//   - featurecache keeps what stages compute from clips, for later epochs and other runs.
//
// This shelf imports base, and package stage of shared for the protocol.
package stages
