// Package specaugment implements the stage "specaugment", which masks bands and frames of mel spectrograms as in
// SpecAugment (Park and others 2019, arXiv:1904.08779, section 2).
//
// A frequency mask covers f consecutive bands in all frames of the row, with f uniform in {0, ..., F}. A time mask
// covers t consecutive frames, with t uniform in {0, ..., min(T, p*length)}. The position of a mask is uniform over the
// row. (The paper draws the first band from [0, bands-f), which would never mask the last band; here bands-f is
// included.) Masks may overlap. The defaults are the paper's policy SM: F 15, T 70, p 0.2, two masks of each kind, but
// without its time warping.
//
// With time_warp W above 0, a frame moves by w frames before the row is masked, with w uniform in {-W, ..., W}, and the
// frame uniform among those that are W or more from both ends. The frames before and after it move in proportion, and
// are interpolated linearly; the first and the last stay. (The paper has W 80, and a spline in two dimensions, whose
// fixed points at the edges leave only the time to be warped.) In a short row W is less than half of its length. The
// processor warps, also on a GPU, which gets the warped row.
//
// Masked elements get the pad value of the tensor, which the model knows as "no signal". With normalized features and
// the usual pad value 0, that is the mean, as in the paper.
//
// An autoregressive model reads the spectrograms that it learns to produce, mel_spectrograms, so masks in them would
// become part of its output. For such a model, bind the stage to the reference spectrograms.
package specaugment
