// Package logmel implements the stage "logmel", which computes log-mel spectrograms as specified by the feature
// contract of a bundle (docs/bundle.md). On the CPU, an Extractor computes them:
//
//	e, err := logmel.New(features)
//	...
//	mel := make([]float32, features.Frames(len(wave))*features.NMels)
//	err = e.Compute(mel, wave) // f32[frames, n_mels]
//
// All intermediate values are float64: with float32, the quiet bands of a loud frame would contain the rounding errors
// of the transform, and the logarithm makes them visible. The result of a row depends only on its samples, not on the
// rest of the batch or the number of threads.
//
// On a GPU (package gpustage), a graph processes a batch: it cuts the rows into frames, multiplies them by the matrices
// of the discrete Fourier transform, and continues like the Extractor, whose tables are its inputs. The same golden
// numbers test both.
package logmel
