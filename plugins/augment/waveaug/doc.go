// Package waveaug changes waveforms as recording does: it makes them louder or quieter, adds white Gaussian noise,
// and flips their polarity. It serves that as the stage "waveaug".
//
// A row x of samples becomes s*g*(x + n). The gain g is uniform in dB. The noise n is scaled by its measured power, so
// that the row's signal-to-noise ratio is the one that was drawn, uniform in dB, and not only that in the mean; the ratio is of
// the powers of all the row's samples, pauses included. The sign s is 1 or -1. Each of the three happens with
// a probability of its own. Nothing is clipped: samples may leave [-1, 1].
//
// On a GPU a graph scales and adds; all numbers are drawn on the CPU, so that a row gets the same ones.
package waveaug
