// Package stages is the shelf that brings a batch through the stages of plugins, without knowing what is in
// the batch or where it goes.
//
//   - catalog finds and checks plugins, and plans which stage runs after which.
//   - supervise runs their processes: start, calls, deadlines, restarts, memory.
//   - sandbox confines these processes: files, network, system calls, limits.
//   - pipeline moves batches from the plan to the trainer: slots, owners, order.
//   - adapt decides how many batches are prepared ahead, and by how many workers.
//   - featurecache keeps what stages compute from clips, for later epochs and other runs.
//
// This shelf imports base, and packages of shared for the protocol, the manifests and the ring.
package stages
