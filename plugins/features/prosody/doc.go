// Package prosody implements the stage "prosody", which computes pitch and energy of speech for each frame of the mel
// spectrogram of the same feature contract, as package pitch does.
package prosody
