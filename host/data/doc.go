// Package data is the shelf between a user's recordings and the batch in a slot.
//
//   - dataset indexes a list, plans which rows form which batch, decodes, resamples and tokenizes.
//   - batch takes those batches into ring slots, through the stages of plugins, past the checks of what they wrote, and
//     to the device.
//
// This shelf imports observe (it lists what it leaves out), settings, stages and base. The trainer is above it: data
// counts its steps and knows nothing of weights.
package data
