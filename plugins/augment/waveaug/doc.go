// Package waveaug implements the stage "waveaug", which changes waveforms as a recording does: it changes the level,
// adds white Gaussian noise, and inverts the polarity.
//
// A row x of samples becomes s*g*(x + n). The gain g is uniform in dB. The noise n is scaled by its measured power, so
// each row has exactly the drawn signal-to-noise ratio, which is uniform in dB. The ratio covers all samples of the
// row, pauses included. The sign s is 1 or -1. Each of the three effects has its own probability. Nothing is clipped:
// samples may leave [-1, 1].
//
// On a GPU, a graph scales and adds. All random numbers are drawn on the CPU, so a row gets the same ones.
package waveaug
