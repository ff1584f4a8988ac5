"""What the examples share: the features of their spectrograms, and masks from lengths."""

import torch
from torch import Tensor

FEATURES = {
    "sample_rate": 22050, "n_fft": 1024, "win_length": 1024, "hop_length": 256, "window": "hann", "center": True, "pad_mode": "constant",
    "power": 1, "n_mels": 80, "mel_scale": "slaney", "mel_norm": "slaney", "f_min": 0, "f_max": 11025, "log": "ln", "log_floor": 1e-5,
    "normalization": {"mean": -5.6, "std": 2.8},
}
HOP, MELS = FEATURES["hop_length"], FEATURES["n_mels"]
LOGMEL = {"name": "target", "stage": "logmel", "inputs": {"waveform": "waveform", "waveform_lengths": "waveform_lengths"},
          "outputs": {"mel_spectrograms": "mel_spectrograms", "mel_lengths": "mel_lengths"}}


def inside(lengths: Tensor, size: int) -> Tensor:
    """bool[B, size]: the positions before each row's length."""
    return torch.arange(size)[None, :] < lengths[:, None]


def bucket(frames: int, text: int | None = None) -> dict[str, int]:
    """A bucket of so many frames: centred features have one more than whole hops."""
    return {**({"T_text": text} if text else {}), "T_wav": HOP * (frames - 1), "T_mel": frames}


def mean(x: Tensor, weight: Tensor) -> Tensor:
    """The mean of x where weight is 1. It is 0 if weight is 0 everywhere."""
    return (x * weight).sum() / weight.sum().clamp(min=1)


def means(lengths: Tensor, **terms: Tensor) -> dict[str, Tensor]:
    """The terms, one number for each row, as means over the rows that are not empty; loss_weight is their number."""
    rows = (lengths > 0).float()
    return {**{name: mean(x, rows) for name, x in terms.items()}, "loss_weight": rows.sum()}
