// Package logmel computes log-mel spectrograms exactly as the feature contract of a graph bundle says (docs/bundle.md), and serves that
// as the stage "logmel". On the CPU an Extractor does it:
//
//	e, err := logmel.New(features)
//	...
//	mel := make([]float32, features.Frames(len(wave))*features.NMels)
//	err = e.Compute(mel, wave) // f32[frames, n_mels]
//
// Everything between the samples and the result is float64: with float32 the quiet bands of a loud frame would
// carry the transform's rounding errors, and the logarithm shows them. The result of a row depends on its samples
// only, not on the batch around it or on how many threads work.
//
// On a GPU (package gpustage) a graph does it for a batch: it cuts the frames out of the rows, multiplies them with the matrices of the
// discrete Fourier transform, and goes on as the Extractor, whose tables are its inputs. It is held to the same golden numbers.
package logmel
