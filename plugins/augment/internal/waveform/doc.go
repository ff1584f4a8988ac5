// Package waveform is what the stages of waveforms have in common: the ports, the rows in parallel, the draws of a row,
// what is reported of them, and scratch memory. A stage is an [Effect]:
//
//	func New() stage.Stage { return &waveform.Stage{Effect: new(effect)} }
//
// The bits of a row depend only on its samples, its key, the configuration and the recordings of a folder: not on other
// rows, the number of workers or the memory that a worker used before.
package waveform
