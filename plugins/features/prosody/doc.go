// Package prosody computes the melody and the loudness of speech, frame by frame beside the mel spectrogram of the same
// feature contract, and serves that as the stage "prosody".
//
//	e, err := prosody.New(features, prosody.Config{})
//	...
//	n := features.Frames(len(wave))
//	pitch, energy := make([]float32, n), make([]float32, n)
//	err = e.Compute(pitch, energy, wave)
//
// Frame t is centred on the sample that mel frame t is centred on, and is padded as the contract says. Its length is the
// configuration's, four periods of the lowest pitch by default, whatever n_fft is.
//
// Energy is the natural logarithm of the frame's root mean square, of samples in [-1, 1], not below ln 1e-5.
//
// Pitch is the natural logarithm of the fundamental frequency in Hz, 0 in frames without a voice. It is found by YIN (A. de
// Cheveigné and H. Kawahara, YIN, a fundamental frequency estimator for speech and music, J. Acoust. Soc. Am. 111 (4),
// 2002, section II), with these of the paper's steps:
//
//   - Step 2, the difference function: the energy of the frame less the frame delayed by a lag, for every lag up to the longest
//     period. It comes from the autocorrelation, and that from the power spectrum (Wiener-Khinchin). The paper sums over a
//     window of one length; here all pairs of samples that the frame has are summed, and divided by their number. So
//     the estimate belongs to the middle of the frame whatever the period, and a glide is not read early.
//   - Step 3, the cumulative mean normalised difference: the difference divided by its mean over all lags up to this one.
//   - Step 4, the absolute threshold: of the lags with a minimum below the threshold, the shortest is the period. That
//     keeps an estimate from falling an octave. When none is below the threshold, the least minimum is the period, as in the paper, but
//     only below a second threshold: the others are frames without a voice, which the paper leaves to its user.
//   - Step 5, parabolic interpolation, of the difference function before its normalisation, as the paper advises: its minima
//     are not shifted.
//
// Step 6, a search in neighbouring frames, is left out: each frame stands for itself.
//
// Everything between the samples and the result is float64. The result of a row depends on its samples only.
package prosody
