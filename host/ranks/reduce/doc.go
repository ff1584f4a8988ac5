// Package reduce adds up what the ranks of a run have computed: between CPUs over TCP, and between GPUs with NCCL. Its
// types implement [train.Ranks].
package reduce
