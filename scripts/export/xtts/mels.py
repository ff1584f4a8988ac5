"""The two spectrograms of XTTS v2: of what is spoken, for its codes, and of the conditioning clip. Both are of 22,050 Hz."""

import librosa
import numpy as np
import torch
from torch import Tensor, nn

from .conditioning import MELS

RATE = 22050
HOP, WINDOW = 256, 1024
_HIGHEST, _FLOOR = 8000, 1e-5
# Samples before the first one that its frame has.
_BEFORE = WINDOW // 2


class Spectrogram(nn.Module):
    """ln of mel bands of the power, divided by the norm f32[MELS] of each band: torch.stft's, centred and mirrored, of each row by itself.

    The transform is a matrix, in float64: next to a loud tone, quiet bands of a sum in float32 are rounding. It has the bins that bands have.
    """

    def __init__(self, fft: int, norms: Tensor):
        super().__init__()
        bank = librosa.filters.mel(sr=RATE, n_fft=fft, n_mels=MELS, fmin=0, fmax=_HIGHEST, htk=True, norm="slaney", dtype=np.float64)
        bins = int(np.flatnonzero(bank.any(0)).max()) + 1
        # The window is in the middle of the transform. Its turns are counted in whole numbers, which large angles are not.
        at = (np.arange(WINDOW) + (fft - WINDOW) // 2)[:, None] * np.arange(bins) % fft
        # Of float32, as coqui's: what its rounding lets through of a loud tone is heard in quiet bands.
        window = torch.hann_window(WINDOW).double().numpy()
        turns = np.concatenate([np.cos(2 * np.pi * at / fft), np.sin(2 * np.pi * at / fft)], 1) * window[:, None]
        self.register_buffer("turns", torch.from_numpy(turns))
        # Rounded as coqui's, which is float32.
        self.register_buffer("bank", torch.from_numpy(bank[:, :bins].T.astype(np.float32).astype(np.float64)))
        self.register_buffer("norms", norms.clone())

    def forward(self, waveform: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """f32[B, 1 + T // HOP, MELS] and the frames i32[B] of f32[B, T], of which lengths i32[B] count. Frames after a row's end are 0."""
        blocks = 1 + waveform.shape[1] // HOP + WINDOW // HOP - 1
        # The reflection of a short row is reflected again, at its beginning.
        last = (lengths - 1).clamp(min=0)[:, None]
        period = (2 * last).clamp(min=1)
        at = torch.remainder((torch.arange(blocks * HOP, dtype=torch.int32) - _BEFORE)[None], period)
        mirrored = torch.minimum(at, period - at)
        padded = waveform.gather(1, mirrored.long()).unflatten(1, (-1, HOP)).double()
        count = 1 + waveform.shape[1] // HOP
        framed = torch.cat([padded[:, i:i + count] for i in range(WINDOW // HOP)], 2)
        power = (framed @ self.turns).square().unflatten(2, (2, -1)).sum(2)
        mel = (power @ self.bank).clamp(min=_FLOOR).log().float() / self.norms
        frames = torch.where(lengths > 0, 1 + lengths // HOP, 0)
        return mel * inside(frames, count)[:, :, None], frames.int()


def inside(lengths: Tensor, size: int) -> Tensor:
    """f32[B, size]: 1 before a row's length, 0 after it."""
    return (torch.arange(size)[None, :] < lengths[:, None]).float()


def spoken(norms: Tensor) -> Spectrogram:
    return Spectrogram(1024, norms)


def conditioning(norms: Tensor) -> Spectrogram:
    return Spectrogram(2048, norms)
