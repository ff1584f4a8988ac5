"""The two spectrograms of XTTS v2: of what is spoken, for its codes, and of the conditioning clip. Both are of 22,050 Hz."""

from dataclasses import dataclass

import librosa
import torch
from torch import Tensor

from .conditioning import MELS

RATE = 22050
HOP, WINDOW = 256, 1024
_HIGHEST, _FLOOR = 8000, 1e-5


@dataclass(frozen=True)
class Spectrogram:
    """ln of mel bands of the power, in [B, MELS, 1 + n // HOP], divided by the norm f32[MELS] of each band."""

    fft: int
    norms: Tensor

    def __call__(self, waveform: Tensor) -> Tensor:
        window = torch.hann_window(WINDOW)
        power = torch.stft(waveform, self.fft, HOP, WINDOW, window, center=True, pad_mode="reflect", return_complex=True).abs().square()
        bank = torch.from_numpy(librosa.filters.mel(sr=RATE, n_fft=self.fft, n_mels=MELS, fmin=0, fmax=_HIGHEST, htk=True, norm="slaney"))
        return (bank @ power).clamp(min=_FLOOR).log() / self.norms[:, None]


def spoken(norms: Tensor) -> Spectrogram:
    return Spectrogram(1024, norms)


def conditioning(norms: Tensor) -> Spectrogram:
    return Spectrogram(2048, norms)
