// Package logmel implements the stage "logmel", which computes log-mel spectrograms as specified by the feature
// contract of a bundle (docs/bundle.md). On the CPU, package mel computes them. The result of a row depends only on its
// samples, not on the rest of the batch or the number of threads.
//
// On a GPU (package gpustage), a graph processes a batch: it cuts the rows into frames, multiplies them by the matrices
// of the discrete Fourier transform, and continues like package mel, whose tables are its inputs. The same golden
// numbers test both.
package logmel
