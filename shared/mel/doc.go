// Package mel computes log-mel spectrograms as specified by the feature contract of a bundle (docs/bundle.md):
//
//	e, err := mel.New(features)
//	...
//	out := make([]float32, features.Frames(len(wave))*features.NMels)
//	err = e.Compute(out, wave) // f32[frames, n_mels]
//
// All intermediate values are float64: with float32, the quiet bands of a loud frame would contain the rounding errors
// of the transform, and the logarithm makes them visible. The result of a waveform depends only on its samples, not on
// the number of threads.
package mel
