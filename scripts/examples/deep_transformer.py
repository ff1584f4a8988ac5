"""A deep transformer that predicts the next frame of a spectrogram: 24 layers with dropout, each computed again in the backward pass.

The layers are PyTorch's. torch.utils.checkpoint keeps what enters a layer, and not what is inside: the memory grows with the number of layers
by one tensor each.

    xtts-export module scripts/examples/deep_transformer.py:build --out runs/deep-transformer --precision f32,bf16
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from common import FEATURES, LOGMEL, MELS, bucket, inside, mean
from xtts_export import Export, sequence
from xtts_export.module import ADAMW


@dataclass(frozen=True)
class Sizes:
    width: int
    heads: int
    layers: int
    frames: tuple[int, ...]  # of the buckets


SMALL = Sizes(width=32, heads=4, layers=24, frames=(181, 441))
LARGE = Sizes(width=1024, heads=16, layers=24, frames=(768,))


class Positions(nn.Module):
    """Sinusoids in a buffer."""

    def __init__(self, width: int, length: int):
        super().__init__()
        position = torch.arange(length).unsqueeze(1)
        speed = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
        table = torch.zeros(1, length, width)
        table[0, :, 0::2] = torch.sin(position * speed)
        table[0, :, 1::2] = torch.cos(position * speed)
        self.register_buffer("table", table)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(x + self.table[:, :x.size(1)])


class DeepTransformer(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.frame_in, self.positions = nn.Linear(MELS, s.width), Positions(s.width, s.frames[-1])
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(s.width, s.heads, 4 * s.width, dropout=0.1, activation="gelu", batch_first=True, norm_first=True)
            for _ in range(s.layers))
        self.norm, self.head = nn.LayerNorm(s.width), nn.Linear(s.width, MELS)

    def forward(self, mel_spectrograms, mel_lengths):
        x = self.positions(self.frame_in(mel_spectrograms))
        causal = torch.triu(torch.full((x.size(1), x.size(1)), float("-inf")), diagonal=1)
        # The first frame of an empty row is seen, so that its softmax has something to sum.
        padding = ~inside(mel_lengths.clamp(min=1), x.size(1))
        padding = torch.zeros(padding.shape).masked_fill(padding, float("-inf"))
        for layer in self.layers:
            x = checkpoint(layer, x, causal, padding, use_reentrant=False)
        return self.head(self.norm(x))


def loss(frames, batch):
    """The next frame, for each frame but the last of a row."""
    weight = inside(batch["mel_lengths"] - 1, frames.shape[1] - 1).float()
    value = mean((frames[:, :-1] - batch["mel_spectrograms"][:, 1:]).abs().mean(-1), weight)
    return {"loss": value, "loss_weight": weight.sum()}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="deep-transformer", module=DeepTransformer(sizes), loss=loss,
        inputs=sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
        optimizer={**ADAMW, "lr": 3e-4}, buckets=[bucket(n) for n in sizes.frames], features=FEATURES, pipeline=[LOGMEL])


def large() -> Export:
    return build(LARGE)
