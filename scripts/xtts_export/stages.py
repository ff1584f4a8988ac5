"""The graphs of the first-party plugins' stages on a GPU, whatever the feature contract and the configuration.

What a contract decides (window, transform, filters, floor, ...) are inputs, which the stage fills with the tables that it computes
with on the CPU. No node works on a shape, so none runs on the CPU while the others run on a GPU: package gpustage refuses a graph that has one.

Rows are summed by a product with ones: ONNX Runtime gives a ReduceSum with a fixed order of additions to cuDNN, which took 7.5 ms of
logmel's 8.6 for 16 rows of 6 s on an H200.
"""

from pathlib import Path

from . import textual

# The samples of a row at the positions of its frames, beyond its ends those of the padding: mirrored is what numpy.pad's mode
# "reflect" takes, and the position itself inside the row. check is 0, or NaN in a row with a sample that is not finite; for a product with 0
# ONNX Runtime would have cuBLAS not look at the samples at all.
#
# From the frames to the logarithm all is f64, as on the CPU. One f32 product passes the golden numbers (4e-5 in ln at most, of
# 1e-4) but not speech: next to a tone of amplitude 0.9, with noise of 1e-4, quiet bands are 9e-3 off, and with noise of 1e-5 2e-2. Two
# f32 products of 32 by 32 are no better on the golden numbers (4.5e-5).
LOGMEL = """
logmel (float[B, T_wav] waveform, int32[B, 1] waveform_lengths, int32[B, 1, 1] mel_lengths,
        int32[P] positions, float[P, 1] ones, bool reflect, int32[T_mel, L] frames, int32[T_mel, 1] frame_numbers,
        double[L] window, double[L, K] cosines, double[L, K] sines, double half_power,
        double[K, n_mels] bank, double floor, double scale, double shift, float pad)
    => (float[B, T_mel, n_mels] mel_spectrograms, float[B, 1] check) {
    one = Constant <value = int32 {1}> ()
    two = Constant <value = int32 {2}> ()
    nothing = Constant <value = float {0}> ()

    last = Sub (waveform_lengths, one)
    twice = Mul (last, two)
    period = Max (twice, one)
    wrapped = Mod (positions, period)
    back = Sub (period, wrapped)
    mirrored = Min (wrapped, back)
    inside = Equal (mirrored, positions)
    kept = Or (inside, reflect)
    taken = GatherElements <axis = 1> (waveform, mirrored)
    padded = Where (kept, taken, nothing)
    nothings = Sub (padded, padded)
    check = MatMul (nothings, ones)

    framed = Gather <axis = 1> (padded, frames)
    framed_f64 = Cast <to = 11> (framed)
    windowed = Mul (framed_f64, window)
    real = MatMul (windowed, cosines)
    imaginary = MatMul (windowed, sines)
    real_square = Mul (real, real)
    imaginary_square = Mul (imaginary, imaginary)
    square = Add (real_square, imaginary_square)
    spectrum = Pow (square, half_power)
    mel = MatMul (spectrum, bank)
    floored = Max (mel, floor)
    logarithm = Log (floored)
    scaled = Mul (logarithm, scale)
    shifted = Add (scaled, shift)
    log_mel = Cast <to = 1> (shifted)
    valid = Less (frame_numbers, mel_lengths)
    mel_spectrograms = Where (valid, log_mel, pad)
}
"""

# noise_power is that of the row's noise times the ratio that was drawn, so that signal_power / noise_power is what scales the noise.
WAVEAUG = """
waveaug (float[B, T_wav] waveform, int32[B, 1] waveform_lengths, int32[T_wav] positions, double[T_wav, 1] ones,
         double[B, 1] factor, bool[B, 1] noisy, double[B, 1] noise_power, float[B, T_wav] noise)
    => (float[B, T_wav] augmented, double[B, 1] signal_power) {
    nothing = Constant <value = float {0}> ()
    nothing_f64 = Constant <value = double {0}> ()

    inside = Less (positions, waveform_lengths)
    clip = Where (inside, waveform, nothing)
    clip_f64 = Cast <to = 11> (clip)
    square = Mul (clip_f64, clip_f64)
    signal_power = MatMul (square, ones)
    loud = Mul (clip_f64, factor)
    noise_f64 = Cast <to = 11> (noise)
    ratio = Div (signal_power, noise_power)
    root = Sqrt (ratio)
    noise_scale = Mul (root, factor)
    scaled_noise = Mul (noise_f64, noise_scale)
    with_noise = Add (loud, scaled_noise)
    sounds = Greater (signal_power, nothing_f64)
    adding = And (noisy, sounds)
    changed_f64 = Where (adding, with_noise, loud)
    changed = Cast <to = 1> (changed_f64)
    difference = Sub (signal_power, signal_power)
    finite = Equal (difference, nothing_f64)
    changing = And (inside, finite)
    augmented = Where (changing, changed, waveform)
}
"""

SPECAUGMENT = """
specaugment (float[B, T_mel, n_mels] mel_spectrograms, bool[B, T_mel, 1] masked_frames, bool[B, 1, n_mels] masked_bands,
             bool[B, T_mel, 1] valid, float pad) => (float[B, T_mel, n_mels] masked) {
    bands = And (valid, masked_bands)
    mask = Or (bands, masked_frames)
    masked = Where (mask, pad, mel_spectrograms)
}
"""

GRAPHS = {"features/logmel/logmel": LOGMEL, "augment/waveaug/waveaug": WAVEAUG, "augment/specaugment/specaugment": SPECAUGMENT}


def write(plugins: Path) -> None:
    textual.write(GRAPHS, plugins)
