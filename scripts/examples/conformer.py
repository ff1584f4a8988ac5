"""A Conformer (arXiv:2005.08100) that learns speech without labels: it predicts spectrogram frames that it does not see.

Feed-forward layers in half steps around attention and a gated depthwise convolution. The layers are PyTorch's.

    xtts-export module scripts/examples/conformer.py:build --out runs/conformer --precision f32,bf16
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from common import FEATURES, LOGMEL, MELS, bucket, inside, mean
from xtts_export import Export, sequence


@dataclass(frozen=True)
class Sizes:
    width: int
    heads: int
    layers: int
    kernel: int
    frames: tuple[int, ...]  # of the buckets


SMALL = Sizes(width=32, heads=2, layers=2, kernel=7, frames=(181, 441))
LARGE = Sizes(width=512, heads=8, layers=8, kernel=31, frames=(1024,))


class FeedForward(nn.Sequential):
    def __init__(self, width: int):
        super().__init__(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))


class Attention(nn.Module):
    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm, self.query_key_value, self.out = nn.LayerNorm(width), nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Tensor, seen: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (self.heads, -1)).transpose(1, 2) for y in self.query_key_value(self.norm(x)).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2))


class Convolution(nn.Module):
    """Gated, then along time in each channel, then normed in groups of channels."""

    def __init__(self, width: int, kernel: int):
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.group_norm, self.out = nn.GroupNorm(4, width), nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        y = F.glu(self.gate((self.norm(x) * weight).transpose(1, 2)), dim=1)
        return self.out(F.silu(self.group_norm(self.depthwise(y)))).transpose(1, 2)


class Block(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.before, self.after = FeedForward(s.width), FeedForward(s.width)
        self.attention, self.convolution = Attention(s.width, s.heads), Convolution(s.width, s.kernel)
        self.norm = nn.LayerNorm(s.width)

    def forward(self, x: Tensor, seen: Tensor, weight: Tensor) -> Tensor:
        x = x + 0.5 * self.before(x)
        x = x + self.attention(x, seen)
        x = x + self.convolution(x, weight)
        return self.norm(x + 0.5 * self.after(x))


class Conformer(nn.Module):
    """Half as many steps as frames: a convolution of stride 2 begins, and each step predicts two frames."""

    def __init__(self, s: Sizes):
        super().__init__()
        self.frame_in = nn.Conv1d(MELS, s.width, 4, stride=2, padding=1)
        self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
        self.head = nn.Linear(s.width, 2 * MELS)

    def forward(self, mel_spectrograms, mel_lengths):
        mel = mel_spectrograms * (1 - hidden(mel_spectrograms))[None, :, None]
        x = F.silu(self.frame_in(mel.transpose(1, 2))).transpose(1, 2)
        steps = inside((mel_lengths + 1) // 2, x.shape[1])
        for block in self.blocks:
            x = block(x, steps[:, None, None, :], steps[:, :, None])
        return self.head(x).unflatten(-1, (2, MELS)).flatten(1, 2)


def hidden(mel: Tensor) -> Tensor:
    """[T_mel]: 1 in the frames that the model does not see, 8 of 20."""
    return (torch.arange(mel.shape[1]) % 20 < 8).to(mel.dtype)


def loss(predicted, batch):
    mel = batch["mel_spectrograms"][:, :predicted.shape[1]]
    weight = inside(batch["mel_lengths"], mel.shape[1]).float() * hidden(mel)
    l1 = mean((predicted - mel).abs().mean(-1), weight)
    return {"loss": l1, "loss_weight": weight.sum()}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="conformer", module=Conformer(sizes), loss=loss,
        inputs=sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
        buckets=[bucket(n) for n in sizes.frames], features=FEATURES, pipeline=[LOGMEL])


def large() -> Export:
    return build(LARGE)
