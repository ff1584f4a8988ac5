"""The power spectrum of frames of waveforms, as torch.stft with mirrored ends, of each row by itself."""

import math

import numpy as np
import torch
from torch import Tensor, nn


class Power(nn.Module):
    """f64[B, 1 + T // hop, bins] of waveforms f32[B, T], of which lengths i32[B] count.

    The transform is a matrix, in float64: next to a loud tone, quiet bands of a sum in float32 are rounding. window is of float32: what its
    rounding lets through of a loud tone is heard in quiet bands.
    """

    def __init__(self, window: Tensor, fft: int, hop: int, bins: int):
        super().__init__()
        self.size, self.hop = len(window), hop
        # The window is in the middle of the transform. Its turns are counted in whole numbers, which large angles are not.
        at = (np.arange(self.size) + (fft - self.size) // 2)[:, None] * np.arange(bins) % fft
        turns = np.concatenate([np.cos(2 * np.pi * at / fft), np.sin(2 * np.pi * at / fft)], 1) * window.double().numpy()[:, None]
        self.register_buffer("turns", torch.from_numpy(turns))

    def forward(self, waveform: Tensor, lengths: Tensor) -> Tensor:
        count, part = 1 + waveform.shape[1] // self.hop, math.gcd(self.hop, self.size)
        step, parts = self.hop // part, self.size // part
        # The reflection of a short row is reflected again, at its beginning.
        last = (lengths - 1).clamp(min=0)[:, None]
        period = (2 * last).clamp(min=1)
        at = torch.remainder((torch.arange(((count - 1) * step + parts) * part, dtype=torch.int32) - self.size // 2)[None], period)
        mirrored = torch.minimum(at, period - at)
        padded = waveform.gather(1, mirrored.long()).unflatten(1, (-1, part)).double()
        framed = torch.cat([padded[:, i:i + (count - 1) * step + 1:step] for i in range(parts)], 2)
        return (framed @ self.turns).square().unflatten(2, (2, -1)).sum(2)
