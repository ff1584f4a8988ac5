// Package specaugment masks bands and frames of mel spectrograms, after SpecAugment (Park et al. 2019,
// arXiv:1904.08779, section 2), and serves that as the stage "specaugment".
//
// A frequency mask covers f consecutive bands of all the row's frames, f uniform in {0, ..., F}; a time mask t
// consecutive frames, t uniform in {0, ..., min(T, p*length)}. Each lies anywhere in the row with the same probability. (The paper
// draws the first band from [0, bands-f), which would never mask the last one; here bands-f is included.) Masks
// may overlap. There is no time warping. The defaults are the paper's policy SM: F 15, T 70, p 0.2, two masks of each kind.
//
// Masked elements get the pad value of the tensor, which is what a model has learned to see where there is nothing. With
// a normalisation in the feature contract and the usual pad 0, that is the mean, as in the paper.
//
// Where a tensor is both what a model reads and what it is to say, as mel_spectrograms in an autoregressive model, it
// learns to say the masks. Bind the stage to the reference spectrograms there.
package specaugment
