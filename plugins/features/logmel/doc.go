// Package logmel computes log-mel spectrograms on the CPU, exactly as the feature contract of a graph bundle
// says (docs/bundle.md), and serves that as the stage "logmel".
//
//	e, err := logmel.New(features)
//	...
//	mel := make([]float32, features.Frames(len(wave))*features.NMels)
//	err = e.Compute(mel, wave) // f32[frames, n_mels]
//
// Everything between the samples and the result is float64: with float32 the quiet bands of a loud frame would
// carry the transform's rounding errors, and the logarithm shows them. The result of a row depends on its samples
// only, not on the batch around it or on how many threads work.
package logmel
