// Package pitch computes pitch and energy of speech for each frame of the mel spectrogram of a feature contract
// (docs/bundle.md):
//
//	e, err := pitch.New(features, pitch.Config{})
//	...
//	n := features.Frames(len(wave))
//	pitches, energies := make([]float32, n), make([]float32, n)
//	err = e.Compute(pitches, energies, wave)
//
// Frame t has the same centre as mel frame t and is padded as the contract says. Its length comes from the
// configuration, four periods of the lowest pitch by default, independent of n_fft.
//
// Energy is the natural logarithm of the frame's root mean square, for samples in [-1, 1], and at least ln(1e-5).
//
// Pitch is the natural logarithm of the fundamental frequency in Hz, or 0 in an unvoiced frame. The algorithm is YIN
// (A. de Cheveigné and H. Kawahara, YIN, a fundamental frequency estimator for speech and music, J. Acoust. Soc. Am.
// 111 (4), 2002, section II), with these steps of the paper:
//
//   - Step 2, the difference function: the energy of the difference between the frame and the frame delayed by a lag,
//     for every lag up to the longest period. It is computed from the autocorrelation, which is computed from the power
//     spectrum (Wiener-Khinchin). The paper sums over a window of fixed length. Here the sum covers all pairs of
//     samples in the frame and is divided by their number. So the estimate belongs to the middle of the frame for any
//     period, and a glide is not estimated too early.
//   - Step 3, the cumulative mean normalised difference: the difference divided by its mean over all lags up to this
//     one.
//   - Step 4, the absolute threshold: of the lags with a minimum below the threshold, the shortest is the period. This
//     avoids octave errors. If none is below the threshold, the smallest minimum is the period, as in the paper, but
//     only if it is below a second threshold. Other frames are unvoiced; the paper leaves this decision to its user.
//   - Step 5, parabolic interpolation of the difference function before its normalisation, because its minima are not
//     shifted. The paper recommends this.
//
// Step 6, a search in neighbouring frames, is not implemented: each frame is independent.
//
// All intermediate values are float64. The result of a row depends only on its samples.
package pitch
