"""A diffusion transformer (arXiv:2212.09748) that learns spectrograms by flow matching (arXiv:2210.02747).

It predicts how a mixture of noise and spectrogram moves towards the spectrogram. Positions are rotary embeddings
(arXiv:2104.09864); the time of the mixture scales and shifts what each layer normalizes.

    xtts-export module scripts/examples/flow_dit.py:build --out runs/flow-dit --precision f32,bf16
"""

import math
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
    frames: tuple[int, ...]  # of the buckets


SMALL = Sizes(width=32, heads=2, layers=2, frames=(181, 441))
LARGE = Sizes(width=768, heads=12, layers=16, frames=(512,))


def rotate(x: Tensor) -> Tensor:
    """Rotary embedding of x[B, heads, T, size]: each pair of halves turns by an angle that grows with the position."""
    half = x.shape[-1] // 2
    speed = torch.exp(torch.arange(half).float() * (-math.log(10000.0) / half))
    angle = torch.arange(x.shape[-2]).float()[:, None] * speed[None, :]
    cos, sin = (torch.cat([y, y], -1).to(x.dtype) for y in (angle.cos(), angle.sin()))
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Block(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.heads = s.heads
        self.modulation = nn.Linear(s.width, 6 * s.width)
        self.attention_norm = nn.LayerNorm(s.width, elementwise_affine=False)
        self.feed_norm = nn.LayerNorm(s.width, elementwise_affine=False)
        self.query_key_value, self.out = nn.Linear(s.width, 3 * s.width), nn.Linear(s.width, s.width)
        self.feed_in, self.feed_out = nn.Linear(s.width, 4 * s.width), nn.Linear(4 * s.width, s.width)

    def forward(self, x: Tensor, time: Tensor, seen: Tensor) -> Tensor:
        shift, scale, gate, feed_shift, feed_scale, feed_gate = self.modulation(F.silu(time))[:, None, :].chunk(6, -1)
        y = self.attention_norm(x) * (1 + scale) + shift
        q, k, v = (z.unflatten(-1, (self.heads, -1)).transpose(1, 2) for z in self.query_key_value(y).chunk(3, -1))
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, attn_mask=seen)
        x = x + gate * self.out(y.transpose(1, 2).flatten(2))
        y = self.feed_norm(x) * (1 + feed_scale) + feed_shift
        return x + feed_gate * self.feed_out(F.gelu(self.feed_in(y), approximate="tanh"))


class FlowDiT(nn.Module):
    def __init__(self, s: Sizes):
        super().__init__()
        self.width = s.width
        self.time_in, self.time_out = nn.Linear(s.width, s.width), nn.Linear(s.width, s.width)
        self.frame_in, self.frame_out = nn.Linear(MELS, s.width), nn.Linear(s.width, MELS)
        self.blocks = nn.ModuleList(Block(s) for _ in range(s.layers))
        self.norm = nn.LayerNorm(s.width)

    def forward(self, mel_spectrograms, mel_lengths):
        mel = mel_spectrograms
        noise, at = torch.randn_like(mel), torch.rand(mel.shape[0])
        x = self.frame_in((noise + at[:, None, None] * (mel - noise)).to(mel.dtype))
        speed = torch.exp(torch.arange(self.width // 2).float() * (-math.log(10000.0) / (self.width // 2)))
        angle = 1000 * at[:, None] * speed[None, :]
        time = self.time_out(F.silu(self.time_in(torch.cat([angle.cos(), angle.sin()], -1).to(mel.dtype))))
        seen = inside(mel_lengths, mel.shape[1])[:, None, None, :]
        for block in self.blocks:
            x = block(x, time, seen)
        return self.frame_out(self.norm(x)), mel - noise


def loss(outputs, batch):
    flow, target = outputs
    weight = inside(batch["mel_lengths"], flow.shape[1]).float()
    squares = mean((flow - target).square().mean(-1), weight)
    return {"loss": squares, "loss_weight": weight.sum()}


def build(sizes: Sizes = SMALL) -> Export:
    torch.manual_seed(0)
    return Export(
        name="flow-dit", module=FlowDiT(sizes), loss=loss,
        inputs=sequence("mel_spectrograms", "f32", "T_mel", MELS, lengths="mel_lengths", origin="stage"),
        buckets=[bucket(n) for n in sizes.frames], features=FEATURES, pipeline=[LOGMEL])


def large() -> Export:
    return build(LARGE)
