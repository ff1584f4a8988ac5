"""The two spectrograms of XTTS v2: of what is spoken, for its codes, and of the conditioning clip. Both are of 22,050 Hz."""

import librosa
import numpy as np
import torch
from torch import Tensor, nn

from .conditioning import MELS
from .power import Power

RATE = 22050
HOP, WINDOW = 256, 1024
_HIGHEST, _FLOOR = 8000, 1e-5


class Spectrogram(nn.Module):
    """ln of mel bands of the power, divided by the norm f32[MELS] of each band."""

    def __init__(self, fft: int, norms: Tensor):
        super().__init__()
        bank = librosa.filters.mel(sr=RATE, n_fft=fft, n_mels=MELS, fmin=0, fmax=_HIGHEST, htk=True, norm="slaney")
        bins = int(np.flatnonzero(bank.any(0)).max()) + 1
        self.power = Power(torch.hann_window(WINDOW), fft, HOP, bins)
        self.register_buffer("bank", torch.from_numpy(bank[:, :bins].T.astype(np.float64)))
        self.register_buffer("norms", norms.clone())

    def forward(self, waveform: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """f32[B, 1 + T // HOP, MELS] and the frames i32[B] of f32[B, T], of which lengths i32[B] count. Frames after a row's end are 0."""
        mel = (self.power(waveform, lengths) @ self.bank).clamp(min=_FLOOR).log().float() / self.norms
        frames = torch.where(lengths > 0, 1 + lengths // HOP, 0)
        return mel * inside(frames, mel.shape[1])[:, :, None], frames.int()


def inside(lengths: Tensor, size: int) -> Tensor:
    """f32[B, size]: 1 before a row's length, 0 after it."""
    return (torch.arange(size)[None, :] < lengths[:, None]).float()


def spoken(norms: Tensor) -> Spectrogram:
    return Spectrogram(1024, norms)


def conditioning(norms: Tensor) -> Spectrogram:
    return Spectrogram(2048, norms)
