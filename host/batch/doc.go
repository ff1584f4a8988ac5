// Package batch brings the batches of a run from the plan to the trainer: it decodes rows into ring slots, sends them through the
// plugins' stages, checks what those have written, and copies batches to the device. Rows that cannot be used it takes out
// and lists.
package batch
