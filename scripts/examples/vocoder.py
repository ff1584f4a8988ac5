"""A vocoder: the generator of HiFi-GAN (arXiv:2010.05646), from spectrograms to waveforms.

Transposed convolutions, each followed by blocks of dilated ones. Without discriminators: the loss is L1 between the logarithms of mel
spectrograms of several sizes.

    xtts-export module scripts/examples/vocoder.py:build --out runs/vocoder --precision f32,bf16
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common import FEATURES, HOP, LOGMEL, MELS, bucket, inside
from xtts_export import Export, sequence


@dataclass(frozen=True)
class Sizes:
    width: int  # halved by each transposed convolution
    rates: tuple[int, ...]  # whose product is the hop
    kernels: tuple[int, ...]
    dilations: tuple[int, ...]
    frames: tuple[int, ...]  # of the buckets


SMALL = Sizes(width=32, rates=(16, 16), kernels=(3,), dilations=(1, 3), frames=(181, 441))
LARGE = Sizes(width=512, rates=(8, 8, 2, 2), kernels=(3, 7, 11), dilations=(1, 3, 5), frames=(33,))
WINDOWS = (128, 256, 512)
BANDS = 40
SLOPE = 0.1


class Block(nn.Module):
    """Pairs of convolutions, the first of each dilated."""

    def __init__(self, width: int, kernel: int, dilations: tuple[int, ...]):
        super().__init__()
        same = lambda dilation: nn.Conv1d(width, width, kernel, dilation=dilation, padding=dilation * (kernel // 2))
        self.dilated, self.plain = (nn.ModuleList(same(d) for d in chosen) for chosen in (dilations, [1] * len(dilations)))

    def forward(self, x: Tensor) -> Tensor:
        for dilated, plain in zip(self.dilated, self.plain, strict=True):
            x = x + plain(F.leaky_relu(dilated(F.leaky_relu(x, SLOPE)), SLOPE))
        return x


class Vocoder(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        widths = [s.width >> i for i in range(len(s.rates) + 1)]
        self.frame_in, self.sample_out = nn.Conv1d(MELS, s.width, 7, padding=3), nn.Conv1d(widths[-1], 1, 7, padding=3)
        self.up = nn.ModuleList(nn.ConvTranspose1d(a, b, 2 * rate, stride=rate, padding=rate // 2) for a, b, rate in zip(widths, widths[1:], s.rates))
        self.blocks = nn.ModuleList(nn.ModuleList(Block(width, k, s.dilations) for k in s.kernels) for width in widths[1:])

    def forward(self, mel_spectrograms):
        x = self.frame_in(mel_spectrograms[:, :-1].transpose(1, 2))
        for up, blocks in zip(self.up, self.blocks, strict=True):
            x = up(F.leaky_relu(x, SLOPE))
            x = sum(block(x) for block in blocks) / len(blocks)
        return torch.tanh(self.sample_out(F.leaky_relu(x, SLOPE))).squeeze(1)


class MelLoss(nn.Module):
    """L1 between logarithms of mel spectrograms, each frame a product with the sines and cosines of its window."""

    def __init__(self, window: int):
        super().__init__()
        self.hop = window // 4
        n, k = torch.arange(window).double(), torch.arange(window // 2).double()
        angle = 2 * math.pi * n[:, None] * k[None, :] / window
        hann = 0.5 - 0.5 * (2 * math.pi * n / window).cos()
        self.waves = (torch.cat([angle.cos(), angle.sin()], 1) * hann[:, None] / window ** 0.5).float()
        centres = torch.linspace(0, 1, BANDS + 2).double() ** 2 * (window // 2)
        rise = (k[None, :] - centres[:-2, None]) / (centres[1:-1] - centres[:-2])[:, None]
        fall = (centres[2:, None] - k[None, :]) / (centres[2:] - centres[1:-1])[:, None]
        self.bands = torch.minimum(rise, fall).clamp(min=0).float().T

    def spectrum(self, waveform: Tensor) -> Tensor:
        parts = waveform.reshape(waveform.shape[0], waveform.shape[1] * (HOP // self.hop), self.hop)
        frames = torch.cat([parts[:, i:parts.shape[1] - 3 + i] for i in range(4)], -1)  # four hops are a window
        real, imaginary = (frames @ self.waves).chunk(2, -1)
        return ((real.square() + imaginary.square()) @ self.bands + 1e-5).log()

    def forward(self, waveform: Tensor, target: Tensor) -> Tensor:
        return (self.spectrum(waveform) - self.spectrum(target)).abs().mean((1, 2))


LOSSES = [MelLoss(window) for window in WINDOWS]


def loss(waveform, batch):
    rows = (batch["waveform_lengths"] > 0).float()
    frames = lambda x: x.reshape(x.shape[0], batch["mel_spectrograms"].shape[1] - 1, HOP)
    spoken = inside(batch["waveform_lengths"], waveform.shape[1]).float()
    parts = [(part(frames(waveform * spoken), frames(batch["waveform"])) * rows).sum() / rows.sum().clamp(min=1) for part in LOSSES]
    return {"loss": sum(parts) / len(parts), "loss_weight": rows.sum()}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="vocoder", module=Vocoder(sizes), loss=loss,
        inputs=[*sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
                *sequence("waveform", "f32", "T_wav", lengths="waveform_lengths")],
        buckets=[bucket(n) for n in sizes.frames], features=FEATURES, pipeline=[LOGMEL])


def large() -> Export:
    return build(LARGE)
