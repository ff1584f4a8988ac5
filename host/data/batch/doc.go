// Package batch brings the batches of a run from the data plan to the trainer: it decodes rows into ring slots, sends
// them through the stages of the plugins, checks the results, and transfers batches to the device. It removes and lists
// unusable rows.
package batch
